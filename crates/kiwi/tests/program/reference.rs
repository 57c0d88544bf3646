//! The command reference is what the program says of itself. `KIWI_UPDATE=1 cargo test` writes it anew.

use crate::support::TestEnvironment;
use std::fmt::Write;

const COMMANDS: [&str; 96] = [
    "",
    "init",
    "run",
    "chain",
    "tool",
    "tool list",
    "tool show",
    "tool new",
    "tool check",
    "tool sign",
    "search",
    "index",
    "index status",
    "index build",
    "index verify",
    "verify",
    "lockfile",
    "lockfile freeze",
    "lockfile validate",
    "lockfile list",
    "lockfile prune",
    "lockfile diff",
    "lockfile update",
    "lockfile push",
    "lockfile pull",
    "install",
    "update",
    "uninstall",
    "outdated",
    "publish",
    "yank",
    "login",
    "registry",
    "registry serve",
    "registry token",
    "registry token create",
    "registry token list",
    "registry token revoke",
    "registry namespace",
    "registry namespace show",
    "registry namespace claim",
    "registry namespace add-owner",
    "registry namespace remove-owner",
    "registry whoami",
    "approve",
    "reject",
    "reviews",
    "grants",
    "grants list",
    "grants revoke",
    "sessions",
    "rules",
    "rules check",
    "rules test",
    "rules hash",
    "rules explain",
    "rules replay",
    "gate",
    "gate explain",
    "trust",
    "trust add",
    "trust remove",
    "trust list",
    "trust key",
    "trust key add",
    "trust key list",
    "trust key remove",
    "auth",
    "auth set",
    "auth login",
    "auth list",
    "auth remove",
    "audit",
    "audit tail",
    "audit show",
    "audit verify",
    "audit export",
    "audit unfinished",
    "cache",
    "cache list",
    "cache prune",
    "schema",
    "doctor",
    "mcp",
    "mcp list",
    "mcp add",
    "mcp remove",
    "mcp tools",
    "mcp call",
    "mcp refresh",
    "mcp review",
    "mcp login",
    "mcp import",
    "mcp install",
    "serve",
    "completions",
];

#[test]
fn the_reference_is_what_the_program_says() {
    let env = TestEnvironment::bare();
    let mut text = String::from("# Commands\n\nGenerated from the program's own help.\n");
    for command in COMMANDS {
        let words: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let ran = env.run(&words);
        assert_eq!(ran.code, 0, "{command}");
        write!(
            text,
            "\n## `{}`\n\n```text\n{}\n```\n",
            format!("kiwi {command}").trim(),
            ran.stdout.trim_end()
        )
        .unwrap();
    }
    // Every subcommand that the help lists is in the list above, `demo` and the aliases of help aside.
    let listed = env.run(&["--help"]).stdout;
    let names = listed
        .lines()
        .skip_while(|line| !line.starts_with("Commands:"))
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| !line.starts_with("   "));
    for name in names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "demo") {
        assert!(COMMANDS.contains(&name), "`kiwi {name}` is not in the reference");
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/reference.md");
    if std::env::var_os("KIWI_UPDATE").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(path).unwrap_or_default(),
        text,
        "run `KIWI_UPDATE=1 cargo test -p kiwi --test program reference`"
    );
}
