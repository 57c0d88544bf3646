//! `kiwi mcp install`: Kiwi in other clients' settings, and out of them again.

use crate::support::terminal::typed;
use crate::support::{TestEnvironment, write};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const KIWI: &str = env!("CARGO_BIN_EXE_kiwi");

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Each client, its files for user and project, and where in them the entry stands.
fn files(env: &TestEnvironment, client: &str) -> (PathBuf, Option<PathBuf>) {
    let (home, project) = (env.home(), env.project());
    match client {
        "claude-code" => (home.join(".claude.json"), Some(project.join(".mcp.json"))),
        "codex" => (home.join(".codex/config.toml"), Some(project.join(".codex/config.toml"))),
        "cursor" => (home.join(".cursor/mcp.json"), Some(project.join(".cursor/mcp.json"))),
        "gemini" => (home.join(".gemini/settings.json"), Some(project.join(".gemini/settings.json"))),
        "goose" => (home.join(".config/goose/config.yaml"), None),
        "opencode" => (home.join(".config/opencode/opencode.json"), Some(project.join("opencode.json"))),
        "vscode" => (home.join(".config/Code/User/mcp.json"), Some(project.join(".vscode/mcp.json"))),
        other => panic!("{other}"),
    }
}

const CLIENTS: [&str; 7] = ["claude-code", "codex", "cursor", "gemini", "goose", "opencode", "vscode"];

#[test]
fn each_client_finds_kiwi_where_it_looks() {
    let env = TestEnvironment::new();
    let project = env.project().canonicalize().unwrap();
    let with_project = json!(["mcp", "--project", project]);
    for client in CLIENTS {
        let (user, own) = files(&env, client);
        let (code, out) = env.json(&["mcp", "install", client, "--yes"]);
        assert_eq!((code, &out["written"]), (0, &json!(true)), "{client}: {out}");
        assert_eq!(out["file"], json!(user), "{client}");
        let installed = text(&user);
        let json = || serde_json::from_str::<Value>(&installed).unwrap();
        match client {
            "codex" => {
                assert_eq!(
                    installed,
                    format!("[mcp_servers.kiwi]\ncommand = \"{KIWI}\"\nargs = [\"mcp\"]\n")
                );
            }
            "goose" => {
                for line in
                    ["extensions:", "  kiwi:", "    enabled: true", "    type: stdio", "    args: [\"mcp\"]"]
                {
                    assert!(installed.lines().any(|found| found == line), "{line}: {installed}");
                }
                assert!(installed.contains(&format!("cmd: {KIWI}")), "{installed}");
            }
            "opencode" => assert_eq!(
                json(),
                json!({"mcp": {"kiwi": {"type": "local", "command": [KIWI, "mcp"], "enabled": true}}})
            ),
            "vscode" => {
                assert_eq!(
                    json(),
                    json!({"servers": {"kiwi": {"type": "stdio", "command": KIWI, "args": ["mcp"]}}})
                );
            }
            "claude-code" => {
                assert_eq!(
                    json(),
                    json!({"mcpServers": {"kiwi": {"type": "stdio", "command": KIWI, "args": ["mcp"]}}})
                );
            }
            _ => assert_eq!(json(), json!({"mcpServers": {"kiwi": {"command": KIWI, "args": ["mcp"]}}})),
        }
        // Idempotent.
        let (code, out) = env.json(&["mcp", "install", client, "--yes"]);
        assert_eq!((code, &out["changed"]), (0, &json!(false)), "{client}: {out}");
        assert_eq!(text(&user), installed);
        if let Some(own) = &own {
            let (code, out) = env.json(&["mcp", "install", client, "--scope", "project", "--yes"]);
            assert_eq!(
                (code, &out["file"]),
                (0, &json!(project.join(own.strip_prefix(env.project()).unwrap())))
            );
            assert!(
                text(own).contains("--project") && text(own).contains(project.to_str().unwrap()),
                "{}",
                text(own)
            );
            if client == "cursor" {
                let value: Value = serde_json::from_str(&text(own)).unwrap();
                assert_eq!(value["mcpServers"]["kiwi"]["args"], with_project);
            }
            assert_eq!(env.run(&["mcp", "install", client, "--scope", "project", "--undo", "--yes"]).code, 0);
            assert!(!own.exists(), "{client}");
        } else {
            let (code, out) = env.json(&["mcp", "install", client, "--scope", "project", "--yes"]);
            assert_eq!((code, &out["error"]["kind"]), (2, &json!("usage")), "{out}");
        }
        assert_eq!(env.run(&["mcp", "install", client, "--undo", "--yes"]).code, 0);
        assert!(!user.exists(), "{client}");
    }
}

#[test]
fn the_change_is_shown_and_nothing_is_written_unasked() {
    let env = TestEnvironment::new();
    let before = "{\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"} // mine\n  }\n}\n";
    let file = write(&env.home().join(".cursor/mcp.json"), before);
    let dry = env.run(&["mcp", "install", "cursor", "--dry-run"]);
    assert_eq!(dry.code, 0, "{}", dry.stderr);
    assert!(
        dry.stdout.contains("@@ -1,5 +1,9 @@") && dry.stdout.contains("+    \"kiwi\": {"),
        "{}",
        dry.stdout
    );
    assert!(dry.stdout.contains("-    \"other\": {\"command\": \"x\"} // mine\n"), "{}", dry.stdout);
    let (code, out) = env.json(&["mcp", "install", "cursor", "--dry-run"]);
    assert_eq!((code, &out["written"], &out["changed"]), (0, &json!(false), &json!(true)));
    let unasked = env.run(&["mcp", "install", "cursor"]);
    assert_eq!(unasked.code, 2);
    assert!(
        unasked.stderr.contains("--yes") && unasked.stderr.contains("+    \"kiwi\""),
        "{}",
        unasked.stderr
    );
    assert_eq!(text(&file), before);
    assert!(!env.home().join(".ai/clients").exists());

    let ran = env.run(&["mcp", "install", "cursor", "--yes"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(text(&file).contains("// mine"));
    assert_eq!(text(&env.home().join(".cursor/mcp.json.kiwi-backup")), before);
    assert!(ran.stderr.contains("kiwi trust add"), "{}", ran.stderr);
    assert_eq!(env.run(&["trust", "add"]).code, 0);
    assert!(!env.run(&["mcp", "install", "cursor", "--yes"]).stderr.contains("kiwi trust add"));

    let undo = env.run(&["mcp", "install", "cursor", "--undo", "--yes"]);
    assert_eq!(undo.code, 0, "{}", undo.stderr);
    assert_eq!(text(&file), before);
    assert!(!env.home().join(".cursor/mcp.json.kiwi-backup").exists());
    let nothing = env.run(&["mcp", "install", "cursor", "--undo"]);
    assert!(nothing.code == 0 && nothing.stderr.contains("nothing of Kiwi"), "{}", nothing.stderr);
}

/// On a terminal the change is shown, then asked about; then whether agents may use the project.
#[test]
fn a_person_is_asked() {
    let env = TestEnvironment::new();
    let file = env.home().join(".cursor/mcp.json");
    let (code, said) = typed(&env.command(&["mcp", "install", "cursor"]), "n\nn\n");
    assert!(code == 0 && said.contains("+    \"kiwi\": {") && said.contains("nothing was written"), "{said}");
    assert!(!file.exists());
    let (code, said) = typed(&env.command(&["mcp", "install", "cursor"]), "y\nn\n");
    assert!(code == 0 && file.exists(), "{said}");
    assert!(said.contains("May agents use what is in"), "{said}");
    assert_eq!(env.json(&["trust", "list"]).1["projects"], json!([]));
    let (code, said) = typed(&env.command(&["mcp", "install", "cursor"]), "y\n");
    assert!(code == 0 && said.contains("has Kiwi already"), "{said}");
    assert_eq!(env.json(&["trust", "list"]).1["projects"].as_array().unwrap().len(), 1);
    let (code, said) = typed(&env.command(&["mcp", "install", "cursor", "--undo"]), "y\n");
    assert!(code == 0 && !file.exists(), "{said}");
}

#[test]
fn what_changed_since_stays_when_kiwi_goes() {
    let env = TestEnvironment::new();
    let file = write(&env.home().join(".codex/config.toml"), "# mine\nmodel = \"a\"\n");
    assert_eq!(env.run(&["mcp", "install", "codex", "--yes"]).code, 0);
    let changed = text(&file).replace("\"a\"", "\"b\"") + "\n[new]\nx = 1\n";
    std::fs::write(&file, changed).unwrap();
    assert_eq!(env.run(&["mcp", "install", "codex", "--undo", "--yes"]).code, 0);
    let left = text(&file);
    assert!(left.contains("# mine\nmodel = \"b\"\n") && left.contains("[new]\nx = 1\n"), "{left}");
    assert!(!left.contains("kiwi"), "{left}");
}

#[test]
fn settings_are_where_the_environment_says() {
    let env = TestEnvironment::new();
    let (config, codex) = (env.tmp().join("config"), env.tmp().join("codex"));
    for client in ["goose", "codex"] {
        let mut command = env.command(&["mcp", "install", client, "--yes"]);
        command.env("XDG_CONFIG_HOME", &config).env("CODEX_HOME", &codex);
        assert!(command.status().unwrap().success());
    }
    assert!(text(&config.join("goose/config.yaml")).contains("kiwi:"));
    assert!(text(&codex.join("config.toml")).contains("[mcp_servers.kiwi]"));
    let ran = env.run(&["mcp", "install", "nobody"]);
    assert!(ran.code == 2 && ran.stderr.contains("claude-code, codex"), "{}", ran.stderr);
    // Without a project there is no project's file.
    let bare = TestEnvironment::bare();
    let (code, out) = bare.json(&["mcp", "install", "cursor", "--scope", "project", "--yes"]);
    assert_eq!((code, &out["error"]["kind"]), (2, &json!("usage")), "{out}");
}

#[test]
fn a_broken_file_is_refused_with_its_place() {
    let env = TestEnvironment::new();
    for (client, path, broken, place) in [
        ("cursor", ".cursor/mcp.json", "{\n  \"mcpServers\": {,}\n}\n", "line 2, column 18"),
        ("codex", ".codex/config.toml", "ok = 1\nmodel = \n", "line 2, column "),
        ("goose", ".config/goose/config.yaml", "extensions:\n  a: [\n", "line "),
    ] {
        let file = write(&env.home().join(path), broken);
        let ran = env.run(&["mcp", "install", client, "--yes"]);
        assert!(ran.code == 2 && ran.stderr.contains(place), "{client}: {}", ran.stderr);
        assert_eq!(text(&file), broken);
    }
}
