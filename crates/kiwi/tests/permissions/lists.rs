//! `--permissions FILE`: a list that narrows.

use kiwi_gate::{Layer, PermissionContext};
use kiwi_model::Permissions;
use serde_json::json;
use std::os::unix::fs::symlink;

use crate::support::{TestEnvironment, write};
use crate::{granted, list, refused, run};

fn place() -> TestEnvironment {
    let env = TestEnvironment::new();
    let project = env.project();
    for (path, text) in
        [("src/a.txt", "open"), ("src/deep/x", "deep"), ("secret", "hidden"), ("SRC/a.txt", "loud")]
    {
        write(&project.join(path), text);
    }
    symlink("../secret", project.join("src/link")).unwrap();
    symlink("src", project.join("way")).unwrap();
    env
}

const SOURCES: &str = "tools: [filesystem.read]\nfilesystem_read: [\"src/**\"]\n";

#[test]
fn a_path_is_judged_by_what_the_kernel_would_open() {
    let env = place();
    let read =
        |permissions: &str, path: &str| run(&env, permissions, &["filesystem.read", &format!("path={path}")]);
    let absolute = |path: &str| env.project().join(path).display().to_string();
    for path in ["src/a.txt", "./src//a.txt", "src/deep/../a.txt", &absolute("src/a.txt"), "way/a.txt"] {
        assert_eq!(granted(read(SOURCES, path))["content"], "open", "{path}");
    }
    assert_eq!(granted(read(SOURCES, "src/deep/x"))["content"], "deep");
    for path in [
        "secret",
        "src/../secret",
        "src/deep/../../secret",
        "src/link",
        "way/link",
        "way/../secret",
        "SRC/a.txt",
        "srcs",
        "/etc/passwd",
        &absolute("secret"),
        &absolute("src/../secret"),
    ] {
        let why = refused(read(SOURCES, path));
        assert!(why.starts_with("reading `") && why.contains("is not allowed by `"), "{path}: {why}");
    }
    // One star stays in its folder.
    let flat = "tools: [filesystem.read]\nfilesystem_read: [\"src/*\"]\n";
    assert_eq!(granted(read(flat, "src/a.txt"))["content"], "open");
    refused(read(flat, "src/deep/x"));
    // A refusal wins over what is listed beside it, and over what leads there.
    let but = format!("{SOURCES}deny: [\"filesystem_read:src/deep\"]\n");
    assert_eq!(granted(read(&but, "src/a.txt"))["content"], "open");
    refused(read(&but, "src/deep/x"));
}

#[test]
fn names_that_look_alike_are_different_names() {
    let env = TestEnvironment::new();
    let (composed, decomposed) = ("src/caf\u{e9}.txt", "src/cafe\u{301}.txt");
    write(&env.project().join(composed), "composed");
    write(&env.project().join(decomposed), "decomposed");
    for (listed, other) in [(composed, decomposed), (decomposed, composed)] {
        let permissions = format!("tools: [filesystem.read]\nfilesystem_read: [\"{listed}\"]\n");
        let read = |path: &str| run(&env, &permissions, &["filesystem.read", &format!("path={path}")]);
        assert_eq!(granted(read(listed))["path"], listed);
        refused(read(other));
    }
}

#[test]
fn only_listed_tools_are_called() {
    let env = place();
    let why = refused(run(&env, SOURCES, &["filesystem.write", "path=src/a.txt", "content=x"]));
    assert!(why.contains("calling `filesystem.write`"), "{why}");
    refused(run(&env, SOURCES, &["kiwi.info"]));
    granted(run(&env, "tools: [\"kiwi.*\"]\n", &["kiwi.info"]));
    refused(run(&env, "tools: [\"kiwi.*\"]\ndeny: [kiwi.info]\n", &["kiwi.info"]));
    // Listing a tool permits nothing of what it touches.
    let why = refused(run(&env, "tools: [\"**\"]\n", &["filesystem.read", "path=src/a.txt"]));
    assert!(why.starts_with("reading"), "{why}");
    assert_eq!(std::fs::read_to_string(env.project().join("src/a.txt")).unwrap(), "open");
}

#[test]
fn a_list_never_widens() {
    let env = place();
    let everything = "tools: [\"**\"]\nfilesystem_read: [\"/**\"]\nfilesystem_write: [\"/**\"]\n";
    let words = ["filesystem.write", "path=src/a.txt", "content=x", "--profile", "readonly"];
    let (code, outcome) = run(&env, everything, &words);
    assert_eq!((code, &outcome["error"]["kind"]), (3, &json!("denied")), "{outcome:#}");
    assert_eq!(std::fs::read_to_string(env.project().join("src/a.txt")).unwrap(), "open");
    granted(run(&env, everything, &["filesystem.write", "path=src/a.txt", "content=x"]));
}

#[test]
fn a_list_that_cannot_be_used_permits_nothing_and_is_recorded() {
    let env = place();
    let absent = env.tmp().join("none.yaml").display().to_string();
    let files = [
        "tools: [\"**\"]\nfilesystem_read: [\"/**\"]\ncolour: red\n",
        "tools: {\n",
        "- tools\n",
        "\u{0}\u{1}",
        "tools: \"**\"\n",
        "tools: [\"**\"]\nfilesystem_read: [\"*/../x\", \"/**\"]\n",
        "tools: [\"**\"]\nfilesystem_read: [\"/**\"]\ndeny: [\"filesystem_read:[\"]\n",
        "",
        "{}",
    ];
    for text in files {
        let why = refused(run(&env, text, &["filesystem.read", "path=src/a.txt"]));
        assert!(!why.is_empty());
    }
    let words = ["run", "filesystem.read", "path=src/a.txt", "--permissions"];
    refused(env.json(&[&words[..], &[&absent]].concat()));
    refused(env.json(&[&words[..], &[&env.tmp().display().to_string()]].concat()));
    let records = env.audit();
    assert_eq!(records.len(), files.len() + 2, "{records:#?}");
    for record in records {
        assert_eq!((&record["event"], &record["decision"]["answer"]), (&json!("denied"), &json!("deny")));
        assert_eq!(record["permission"]["allowed"], false, "{record:#}");
    }
    // The same list, once it can be read.
    granted(run(&env, SOURCES, &["filesystem.read", "path=src/a.txt"]));
    assert!(list(&env, SOURCES).ends_with("permissions.yaml"));
}

#[test]
fn a_child_that_declares_more_than_its_parent_is_refused() {
    let env = place();
    let read = |text: &str| Permissions::read(text.as_bytes()).unwrap();
    let root = env.project();
    let parent = read(
        "filesystem_read: [\"src/**\"]\nfilesystem_write: [\"out/*\"]\ntools: [\"db.*\"]\nshell_commands: [git status]\nnetwork_hosts: [\"*.example.org\"]\nmcp_actions: {mail: [read]}\nenv: [\"APP_*\"]\nsecrets: [one]\n",
    );
    let context = PermissionContext::everything()
        .and(Layer::new("the parent", &parent, &root).map_err(|it| *it).unwrap());
    let refusal = |text: &str| context.escalation(&read(text), &root).map(|objection| objection.fault());
    for within in [
        "filesystem_read: [\"src/a/*.rs\", \"src/**\"]",
        "filesystem_write: [\"out/x\"]",
        "tools: [db.read]",
        "shell_commands: [git status --short]",
        "network_hosts: [api.example.org]",
        "mcp_actions: {mail: [read]}",
        "env: [APP_KEY]",
        "secrets: [one]",
        "{}",
    ] {
        assert!(refusal(within).is_none(), "{within}");
    }
    for (beyond, pattern) in [
        ("filesystem_read: [\"src/**\", \"**\"]", "**"),
        ("filesystem_read: [\"src/../secret\"]", "src/../secret"),
        ("filesystem_write: [\"out/**\"]", "out/**"),
        ("tools: [\"db*\"]", "db*"),
        ("shell_commands: [git]", "git"),
        ("network_hosts: [\"*.org\"]", "*.org"),
        ("mcp_actions: {mail: [\"*\"]}", "mail/*"),
        ("env: [\"*\"]", "*"),
        ("secrets: [two]", "two"),
    ] {
        let fault = refusal(beyond).unwrap_or_else(|| panic!("{beyond} is within"));
        assert!(fault.message.contains("permission escalation denied"), "{}", fault.message);
        assert!(fault.message.contains(&format!("`{pattern}`")), "{}", fault.message);
        assert_eq!(fault.details["pattern"], pattern);
        assert_eq!(fault.details["reason"]["policy_id"], "permission");
    }
}
