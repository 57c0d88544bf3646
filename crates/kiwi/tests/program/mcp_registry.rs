//! `kiwi mcp list|add|remove|import`: which servers there are, and where that is written.

use crate::support::{TestEnvironment, write};
use serde_json::json;

const FILE: &str = "config/mcp_registry.yaml";

fn text(env: &TestEnvironment) -> String {
    std::fs::read_to_string(env.project().join(".ai").join(FILE)).unwrap()
}

fn names(env: &TestEnvironment) -> Vec<String> {
    let (code, out) = env.json(&["mcp", "list"]);
    assert_eq!(code, 0, "{out}");
    let servers = out["servers"].as_array().unwrap();
    servers.iter().map(|server| server["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn servers_are_added_listed_and_removed() {
    let env = TestEnvironment::new();
    assert!(names(&env).is_empty());
    let none = env.run(&["mcp", "list"]);
    assert_eq!((none.code, none.stdout.as_str()), (0, ""));
    assert!(none.stderr.contains("kiwi mcp add"), "{}", none.stderr);

    let before = "# ours\nmcps:\n  # the first\n  first: {command: one}\n";
    env.write(FILE, before);
    let words = [
        "mcp",
        "add",
        "git-hub",
        "--env",
        "TOKEN=${GITHUB_TOKEN}",
        "--isolation",
        "sandboxed",
        "--description",
        "Issues: all",
        "--",
        "npx",
        "-y",
        "@x/server@1.2.3",
        "--flag",
    ];
    let ran = env.run(&words);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(text(&env).starts_with(before), "{}", text(&env));
    let (_, out) = env.json(&["mcp", "list"]);
    let server = &out["servers"][1];
    assert_eq!(server["name"], "git-hub");
    assert_eq!((&server["type"], &server["command"]), (&json!("stdio"), &json!("npx")));
    assert_eq!(server["args"], json!(["-y", "@x/server@1.2.3", "--flag"]));
    assert_eq!(server["env"], json!(["TOKEN"]));
    assert_eq!((&server["isolation"], &server["space"]), (&json!("sandboxed"), &json!("project")));
    assert_eq!(server["package"], json!({"name": "@x/server", "version": "1.2.3"}));
    assert_eq!(
        (&server["idle_timeout"], &server["timeout"], &server["start_timeout"], &server["schema_ttl"]),
        (&json!(300), &json!(60), &json!(30), &json!(3600))
    );
    assert_eq!(server["tools"], json!(null));

    let ran = env.run(&[
        "mcp",
        "add",
        "docs",
        "https://127.0.0.1:9/mcp",
        "--header",
        "X-Key: ${KEY}",
        "--auth",
        "oauth",
        "--user",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(names(&env), ["docs", "first", "git-hub"]);
    let user = std::fs::read_to_string(env.home().join(".ai").join(FILE)).unwrap();
    assert!(user.contains("X-Key") && user.contains("auth: oauth"), "{user}");

    // The project's hides the user's, and that is said.
    let ran = env.run(&["mcp", "add", "docs", "--", "other"]);
    assert!(ran.stderr.contains("hides the user's"), "{}", ran.stderr);
    let (_, out) = env.json(&["mcp", "list"]);
    let hidden: Vec<_> =
        out["servers"].as_array().unwrap().iter().filter(|it| it["shadowed"] == true).collect();
    assert_eq!(hidden.len(), 1);
    assert_eq!((&hidden[0]["name"], &hidden[0]["space"]), (&json!("docs"), &json!("user")));

    let ran = env.run(&["mcp", "add", "first", "--user", "--", "another"]);
    assert!(ran.code == 0 && ran.stderr.contains("the project's `first` hides it"), "{}", ran.stderr);
    assert_eq!(env.run(&["mcp", "remove", "first", "--user"]).code, 0);

    assert_eq!(env.run(&["mcp", "remove", "docs"]).code, 0);
    assert_eq!(env.run(&["mcp", "remove", "git-hub"]).code, 0);
    assert_eq!(text(&env), before);
    assert_eq!(names(&env), ["docs", "first"]);
    assert_eq!(env.run(&["mcp", "remove", "docs"]).code, 0, "now the user's");
    let (code, out) = env.json(&["mcp", "remove", "docs"]);
    assert_eq!((code, &out["error"]["kind"]), (2, &json!("not_found")));
}

#[test]
fn without_a_project_the_users_file_is_meant() {
    let env = TestEnvironment::bare();
    assert_eq!(env.run(&["mcp", "add", "a", "--", "x"]).code, 0);
    assert!(env.home().join(".ai").join(FILE).exists());
    assert_eq!(names(&env), ["a"]);
}

#[test]
fn what_cannot_be_is_refused_and_nothing_is_written() {
    let env = TestEnvironment::new();
    for (words, expect) in [
        (&["mcp", "add", "A b", "--", "x"][..], "not a server's name"),
        (&["mcp", "add", "shell", "--", "x"], "belongs to the system"),
        (&["mcp", "add", "a"], "how the server is reached is missing"),
        (&["mcp", "add", "a", "https://example.com", "--", "x"], "not both"),
        (&["mcp", "add", "a", "--env", "X", "--", "x"], "--env is not NAME=VALUE"),
        (&["mcp", "add", "a", "--env", "X=1", "--env", "X=2", "--", "x"], "twice"),
        (&["mcp", "add", "a", "--header", "A:b", "--", "x"], "no --header"),
        (&["mcp", "add", "a", "https://example.com", "--env", "X=1"], "no --env"),
        (&["mcp", "add", "a", "ftp://example.com"], "http://"),
        (&["mcp", "add", "a", "http://example.com/mcp", "--header", "A:b"], "unencrypted"),
        (&["mcp", "add", "a", "https://${HOST}/mcp"], "host itself"),
    ] {
        let ran = env.run(words);
        assert_eq!(ran.code, 2, "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(expect), "{words:?}: {}", ran.stderr);
        assert!(!env.project().join(".ai").join(FILE).exists(), "{words:?}");
    }
    assert_eq!(env.run(&["mcp", "add", "a", "--", "x"]).code, 0);
    let again = env.run(&["mcp", "add", "a", "--", "y"]);
    assert_eq!(again.code, 2);
    assert!(again.stderr.contains("kiwi mcp remove a"), "{}", again.stderr);
}

#[test]
fn a_broken_file_refuses_with_its_place() {
    let env = TestEnvironment::new();
    let broken = "mcps:\n  a: {command: x, comand: y}\n";
    env.write(FILE, broken);
    for words in
        [&["mcp", "list"][..], &["mcp", "add", "b", "--", "x"], &["mcp", "remove", "a"], &["mcp", "review"]]
    {
        let ran = env.run(words);
        assert_eq!(ran.code, 2, "{words:?}");
        assert!(ran.stderr.contains("line 2, column") && ran.stderr.contains("comand"), "{}", ran.stderr);
    }
    assert_eq!(text(&env), broken);
}

/// Who trusts a project and adds a server to it still trusts it; who does not is told.
#[test]
fn a_trusted_project_stays_trusted() {
    let env = TestEnvironment::new();
    let ran = env.run(&["mcp", "add", "a", "--", "x"]);
    assert!(ran.stderr.contains("kiwi trust add"), "{}", ran.stderr);
    assert_eq!(env.run(&["trust", "add"]).code, 0);
    let record = || {
        let folder = env.home().join(".ai/trust");
        let file = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
        let value: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        value["config"].as_str().unwrap().to_owned()
    };
    let first = record();
    let ran = env.run(&["mcp", "add", "b", "--", "x"]);
    assert!(ran.code == 0 && !ran.stderr.contains("kiwi trust add"), "{}", ran.stderr);
    let second = record();
    assert_ne!(first, second);
    assert_eq!(env.run(&["mcp", "remove", "b"]).code, 0);
    assert_ne!(second, record());
    // A change that nobody made with Kiwi is not covered by that.
    env.write("config/other.yaml", "x: 1\n");
    let ran = env.run(&["mcp", "remove", "a"]);
    assert!(ran.stderr.contains("kiwi trust add"), "{}", ran.stderr);
}

#[test]
fn servers_of_other_clients_are_taken_over() {
    let env = TestEnvironment::new();
    write(
        &env.project().join(".mcp.json"),
        r#"{"mcpServers": {"My Server": {"command": "npx", "args": ["-y", "s"], "env": {"API_KEY": "hush"}}, "old": {"type": "sse", "url": "https://example.com"}}}"#,
    );
    write(&env.home().join(".codex/config.toml"), "[mcp_servers.files]\ncommand = \"f\"\n");
    let dry = env.run(&["mcp", "import", "--dry-run"]);
    assert_eq!(dry.code, 0, "{}", dry.stderr);
    assert!(
        dry.stdout.contains("my-server") && dry.stderr.contains("is called `my-server` here"),
        "{}",
        dry.stderr
    );
    assert!(!dry.stderr.contains("hush"), "{}", dry.stderr);
    assert!(names(&env).is_empty());

    let (code, out) = env.json(&["mcp", "import"]);
    assert_eq!((code, &out["written"]), (0, &json!(true)), "{out}");
    assert_eq!(out["imported"][0]["original"], "My Server");
    assert!(out["skipped"][0]["why"].as_str().unwrap().contains("SSE"));
    assert_eq!(names(&env), ["my-server"]);
    // Twice is once.
    let (_, out) = env.json(&["mcp", "import"]);
    assert_eq!((&out["written"], out["skipped"].as_array().unwrap().len()), (&json!(false), 2), "{out}");

    let ran = env.run(&["mcp", "import", "--from", "codex", "--user"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let user = std::fs::read_to_string(env.home().join(".ai").join(FILE)).unwrap();
    assert!(user.contains("files:"), "{user}");

    let file = write(
        &env.tmp().join("vs.json"),
        "{\"servers\": {\"web\": {\"url\": \"https://example.com/mcp\"},}}",
    );
    assert_eq!(env.run(&["mcp", "import", file.to_str().unwrap()]).code, 0);
    assert_eq!(names(&env), ["files", "my-server", "web"]);

    let broken = write(&env.tmp().join("broken.json"), "{\"mcpServers\": {\n}");
    let ran = env.run(&["mcp", "import", broken.to_str().unwrap()]);
    assert!(ran.code == 2 && ran.stderr.contains("line 2, column 2"), "{}", ran.stderr);
    assert_eq!(env.run(&["mcp", "import", "--from", "goose"]).code, 2);
    assert_eq!(env.run(&["mcp", "import", "--from", "nobody"]).code, 2);
}
