use super::*;
use crate::server::{HttpAuth, Reach};
use std::collections::BTreeMap;

const SAMPLES: [(&str, &str); 7] = [
    (
        ".mcp.json",
        r#"{"mcpServers": {
            "GitHub Tools": {"command": "npx", "args": ["-y", "@x/server"], "env": {"TOKEN": "abc", "B": "${B:-x}"}},
            "docs": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${T}"}},
            "old": {"type": "sse", "url": "https://example.com/sse"},
            "off": {"command": "x", "disabled": true},
            "filesystem": {"command": "x"},
            "kiwi": {"command": "/usr/bin/kiwi", "args": ["mcp"]}
        }}"#,
    ),
    (
        ".gemini/settings.json",
        r#"{"mcpServers": {"a": {"httpUrl": "https://example.com/mcp", "timeout": 30000, "trust": true},
            "b": {"command": "python", "args": ["-m", "s"], "env": {"K": "$MY_TOKEN"}, "cwd": "./s"},
            "c": {"url": "https://example.com/sse"}}}"#,
    ),
    (
        ".vscode/mcp.json",
        r#"{
            // servers
            "inputs": [{"type": "promptString", "id": "api-key", "description": "key", "password": true}],
            "servers": {"a": {"type": "stdio", "command": "${workspaceFolder}/run", "args": ["${env:X}", "${userHome}"],
                "env": {"API_KEY": "${input:api-key}", "NONE": null}, "envFile": ".env"},},
        }"#,
    ),
    (
        "config.toml",
        "model = \"x\"\n[mcp_servers.a]\ncommand = \"npx\"\nargs = [\"-y\", \"p\"]\nenv = { A = \"1\" }\nenv_vars = [\"PASSED\"]\nstartup_timeout_sec = 20\ntool_timeout_sec = 45.5\n\
         [mcp_servers.b]\nurl = \"https://example.com/mcp\"\nbearer_token_env_var = \"TOK\"\nenv_http_headers = { X-A = \"XA\" }\n[mcp_servers.c]\ncommand = \"x\"\nenabled = false\n",
    ),
    (
        "config.yaml",
        "GOOSE_MODEL: m\nextensions:\n  developer:\n    bundled: true\n    enabled: true\n    name: developer\n    timeout: 300\n    type: builtin\n  fetch:\n    enabled: true\n    type: stdio\n    name: fetch\n    cmd: uvx\n    args: [mcp-server-fetch]\n    envs: {A: b}\n    env_keys: [SECRET_KEY]\n    timeout: 20\n  web:\n    enabled: true\n    type: streamable_http\n    uri: https://example.com/mcp\n    headers: {}\n",
    ),
    (
        "opencode.json",
        r#"{"$schema": "s", "mcp": {"a": {"type": "local", "command": ["bun", "x", "cmd"], "environment": {"A": "{env:SET}"}, "enabled": true},
            "b": {"type": "remote", "url": "https://example.com/mcp", "oauth": {}}}}"#,
    ),
    (
        "opencode.jsonc",
        r#"{"mcp": {"servers": {"a": {"type": "local", "command": ["bun"], "cwd": "."}, "z": {"type": "local", "command": ["x"], "disabled": true}}}}"#,
    ),
];

fn read(file: &str, text: &str) -> Result<Imported, McpError> {
    let origin = Origin { file: Path::new(file), client: None, project: Some(Path::new("/p")) };
    import(text, origin, Space::User, &BTreeSet::new())
}

fn sample(index: usize) -> Imported {
    let (file, text) = SAMPLES[index];
    read(file, text).unwrap()
}

/// `name: command args` or `name: url`, and the names that were passed over.
fn summary(imported: &Imported) -> (Vec<String>, Vec<&str>) {
    let taken = imported.taken.iter().map(|taken| match &taken.server.reach {
        Reach::Stdio { command, args, .. } => format!("{}: {command} {}", taken.server.name, args.join(" ")),
        Reach::Http { url, .. } => format!("{}: {url}", taken.server.name),
    });
    let mut taken: Vec<String> = taken.collect();
    taken.sort();
    (taken, imported.skipped.iter().map(|skipped| skipped.original.as_str()).collect())
}

fn env(taken: &Taken) -> BTreeMap<&str, &str> {
    match &taken.server.reach {
        Reach::Stdio { env: map, .. } | Reach::Http { headers: map, .. } => {
            map.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect()
        }
    }
}

fn note<'a>(taken: &'a Taken, part: &str) -> Option<&'a String> {
    taken.notes.iter().find(|note| note.contains(part))
}

fn named<'a>(imported: &'a Imported, name: &str) -> &'a Taken {
    imported.taken.iter().find(|taken| taken.original == name).unwrap()
}

#[test]
fn the_common_form() {
    let imported = sample(0);
    let (taken, mut skipped) = summary(&imported);
    assert_eq!(
        taken,
        ["docs: https://example.com/mcp", "filesystem-server: x ", "github-tools: npx -y @x/server"]
    );
    skipped.sort_unstable();
    assert_eq!(skipped, ["kiwi", "off", "old"]);
    let github = named(&imported, "GitHub Tools");
    assert_eq!(env(github), BTreeMap::from([("TOKEN", "abc"), ("B", "${B}")]));
    assert!(note(github, "called `github-tools`").is_some());
    assert!(note(github, "`TOKEN` is written out").is_some());
    assert!(note(github, "`B` was `x` there").is_some());
    assert!(named(&imported, "docs").notes.is_empty());
}

#[test]
fn gemini() {
    let imported = sample(1);
    assert_eq!(
        summary(&imported).0,
        ["a: https://example.com/mcp", "b: python -m s", "c: https://example.com/sse"]
    );
    assert_eq!(named(&imported, "a").server.timeout.as_secs(), 30);
    assert!(note(named(&imported, "a"), "`trust` is not taken over").is_some());
    assert_eq!(env(named(&imported, "b")), BTreeMap::from([("K", "${MY_TOKEN}")]));
    assert!(note(named(&imported, "c"), "SSE").is_some());
}

#[test]
fn vscode() {
    let imported = sample(2);
    assert_eq!(summary(&imported).0, ["a: ./run ${X} ${HOME}"]);
    let a = named(&imported, "a");
    assert_eq!(env(a), BTreeMap::from([("API_KEY", "${API_KEY}")]));
    assert!(note(a, "asked for `api-key`").is_some() && note(a, "`envFile` is not taken over").is_some());
}

#[test]
fn codex() {
    let imported = sample(3);
    assert_eq!(
        summary(&imported),
        (vec!["a: npx -y p".to_owned(), "b: https://example.com/mcp".to_owned()], vec!["c"])
    );
    let a = named(&imported, "a");
    assert_eq!(env(a), BTreeMap::from([("A", "1"), ("PASSED", "${PASSED}")]));
    assert_eq!((a.server.timeout.as_secs(), a.server.start_timeout.as_secs()), (46, 20));
    assert_eq!(
        env(named(&imported, "b")),
        BTreeMap::from([("Authorization", "Bearer ${TOK}"), ("X-A", "${XA}")])
    );
}

#[test]
fn goose() {
    let imported = sample(4);
    assert_eq!(
        summary(&imported),
        (
            vec!["fetch: uvx mcp-server-fetch".to_owned(), "web: https://example.com/mcp".to_owned()],
            vec!["developer"]
        )
    );
    let fetch = named(&imported, "fetch");
    assert_eq!(env(fetch), BTreeMap::from([("A", "b"), ("SECRET_KEY", "${SECRET_KEY}")]));
    assert_eq!(fetch.server.timeout.as_secs(), 20);
}

#[test]
fn opencode_in_both_forms() {
    let imported = sample(5);
    assert_eq!(summary(&imported).0, ["a: bun x cmd", "b: https://example.com/mcp"]);
    assert_eq!(env(named(&imported, "a")), BTreeMap::from([("A", "${SET}")]));
    assert!(matches!(named(&imported, "b").server.reach, Reach::Http { auth: HttpAuth::Oauth, .. }));
    assert_eq!(summary(&sample(6)), (vec!["a: bun ".to_owned()], vec!["z"]));
}

#[test]
fn a_users_servers_for_one_project() {
    let text = r#"{"mcpServers": {"a": {"command": "x"}}, "projects": {"/p": {"mcpServers": {"b": {"command": "y"}}}, "/q": {"mcpServers": {"c": {"command": "z"}}}}}"#;
    assert_eq!(summary(&read(".claude.json", text).unwrap()).0, ["a: x ", "b: y "]);
}

#[test]
fn what_cannot_be_read_is_told() {
    for (file, text, expect) in [
        ("x.json", "{", "line 1, column 2"),
        ("x.json", "{}", "names no MCP servers"),
        ("x.toml", "a = = 1", "line 1"),
        ("x.yaml", "a: [", "line"),
    ] {
        let error = read(file, text).unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
    }
    let why = |entry: &str| {
        let imported = read("x.json", &format!("{{\"mcpServers\": {{\"a\": {entry}}}}}")).unwrap();
        imported.skipped.first().map(|skipped| skipped.why.clone()).unwrap_or_default()
    };
    for (entry, expect) in [
        ("1", "no map"),
        ("{}", "neither a command nor an address"),
        (r#"{"command": 1}"#, "no text"),
        (r#"{"command": "x", "args": "y"}"#, "no list"),
        (r#"{"command": "x", "args": [[]]}"#, "no list of texts"),
        (r#"{"command": "x", "env": {"A": {}}}"#, "no text"),
        (r#"{"command": ""}"#, "empty"),
        (r#"{"url": "${URL}/mcp"}"#, "is no address"),
        (r#"{"url": "http://example.com/mcp", "headers": {"A": "b"}}"#, "unencrypted"),
        (r#"{"type": "ws", "url": "wss://x"}"#, "not known"),
    ] {
        assert!(why(entry).contains(expect), "{entry}: {}", why(entry));
    }
    let known = BTreeSet::from([ServerName::parse("a").unwrap()]);
    let origin = Origin { file: Path::new("x.json"), client: None, project: None };
    let imported = import(r#"{"mcpServers": {"a": {"command": "x"}}}"#, origin, Space::User, &known).unwrap();
    assert!(imported.taken.is_empty() && imported.skipped[0].why.contains("already"));
}

#[test]
fn names_are_respelt() {
    for (original, expect) in [
        ("My Server!", "my-server"),
        ("@scope/pkg", "scope-pkg"),
        ("1password", "password"),
        ("shell", "shell-server"),
        ("Ünïcode", "n-code"),
        ("a.b.c", "a-b-c"),
        ("_x", "x"),
    ] {
        assert_eq!(respelt(original).unwrap().as_str(), expect);
    }
    assert!(respelt("日本").is_err() && respelt("").is_err() && respelt("123").is_err());
    assert!(respelt(&"x".repeat(500)).is_ok());
}

/// Whatever is done to a file, what is read of it can be written in the registry, and nothing panics.
#[test]
fn any_file_gives_servers_that_can_be_written_or_none() {
    let mut seed = 0x1234_5678_9abc_def1_u64;
    let mut next = |most: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed >> 33).unwrap() % most.max(1)
    };
    let pieces = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\n",
        "null",
        "1",
        "-1e999",
        "true",
        "${",
        "}",
        "${env:",
        "${input:",
        "$X",
        "{env:",
        "\\u0000",
        "\u{0}",
        "é",
        "command",
        "url",
        "\"type\": \"http\",",
        "\"args\": 1,",
        "http://",
        "#",
        "//",
        "/*",
        "= ",
        "- ",
    ];
    let mut taken = 0;
    for round in 0..10_000 {
        let (file, text) = SAMPLES[round % SAMPLES.len()];
        let mut text: Vec<char> = text.chars().collect();
        for _ in 0..next(4) {
            let at = next(text.len());
            let until = (at + next(20)).min(text.len());
            let piece = pieces[next(pieces.len())].chars();
            text.splice(at..until, piece);
        }
        let text: String = text.into_iter().collect();
        let Ok(imported) = read(file, &text) else { continue };
        for Taken { server, .. } in imported.taken {
            taken += 1;
            crate::registry::check_reach(&server.reach).unwrap_or_else(|why| panic!("{server:?}: {why}"));
        }
    }
    assert!(taken > 1000, "{taken}");
}
