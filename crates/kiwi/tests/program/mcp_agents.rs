//! Agents on real SDKs before Kiwi, real servers behind it: search, load, execute through the gate, recorded.

use crate::support::mcp::{Served, components, trusted};
use crate::support::{TestEnvironment, processes};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A word in the command of the slow tool, that no other test has.
fn marker(name: &str) -> String {
    format!("mark-agents-{name}-{}", std::process::id())
}

/// A project with five real servers and a slow tool of its own.
fn project(name: &str) -> TestEnvironment {
    let env = TestEnvironment::new();
    let folder = components();
    let (node, modules) =
        (folder.join("node_modules/node/bin/node"), folder.join("node_modules/@modelcontextprotocol"));
    let files = env.project().join("files");
    std::fs::create_dir_all(&files).unwrap();
    std::fs::write(files.join("note.txt"), "what the file says\n").unwrap();
    for words in [&["init", "-q"][..], &["commit", "-q", "--allow-empty", "-m", "first"]] {
        let made = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
            .args(words)
            .current_dir(&files)
            .env("HOME", env.home())
            .status();
        assert!(made.unwrap().success());
    }
    let script = |name: &str| modules.join(name).join("dist/index.js").display().to_string();
    let bin = |name: &str| folder.join("venv/bin").join(name).display().to_string();
    let registry = json!({"mcps": {
        "everything": {"command": node, "args": [script("server-everything"), "stdio"]},
        "files": {"command": node, "args": [script("server-filesystem"), files]},
        "memory": {"command": node, "args": [script("server-memory")], "env": {"MEMORY_FILE_PATH": env.tmp().join("memory.jsonl")}},
        "git": {"command": bin("mcp-server-git"), "args": ["--repository", files]},
        "clock": {"command": bin("mcp-server-time")},
    }});
    env.write_user("config/mcp_registry.yaml", registry.to_string());
    let slow = format!(
        "# kiwi: version: \"1.0.0\"\n# kiwi: description: Takes very long\nexec -a {} sleep 300\n",
        marker(name)
    );
    env.write("tools/slow.sh", slow);
    trusted(&env);
    let ran = env.run(&["mcp", "refresh"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    env
}

/// What every agent does.
fn steps(env: &TestEnvironment, way: &str) -> String {
    let files = env.project().join("files");
    let run =
        |id: &str, parameters: Value| json!({"item_type": "mcp", "item_id": id, "parameters": parameters});
    json!({
        "steps": [
            ["search", "search", {"query": "current time in a timezone", "limit": 5}],
            ["load", "load", {"item_type": "mcp", "item_id": "clock.get_current_time"}],
            ["time", "execute", run("clock.get_current_time", json!({"timezone": "UTC"}))],
            ["unknown", "execute", {"item_type": "tool", "item_id": "no_such_tool"}],
            ["wrong", "execute", run("everything.get-sum", json!({"a": "many"}))],
            ["guidance", "help", {"action": "guidance", "topic": "rules"}],
        ],
        "together": [
            run("everything.get-sum", json!({"a": 2, "b": 3})),
            run("files.read_text_file", json!({"path": files.join("note.txt")})),
            run("memory.create_entities", json!({"entities": [{"name": format!("Kiwi {way}"), "entityType": "bird", "observations": ["does not fly"]}]})),
            run("git.git_log", json!({"repo_path": files})),
        ],
        "slow": {"item_type": "tool", "item_id": "slow"},
    })
    .to_string()
}

fn check(env: &TestEnvironment, name: &str, said: &str) {
    let said: Value = serde_json::from_str(said).unwrap_or_else(|_| panic!("{said}"));
    let found = said["search"]["content"]["results"].as_array().unwrap_or_else(|| panic!("{said:#}"));
    assert!(found.iter().any(|hit| hit["id"] == "clock.get_current_time"), "{found:#?}");
    assert!(
        said["load"]["content"]["manifest"]["parameters"]["properties"]["timezone"].is_object(),
        "{said:#}"
    );
    assert_eq!(
        (&said["time"]["is_error"], &said["time"]["content"]["result"]["timezone"]),
        (&json!(false), &json!("UTC"))
    );
    for (step, kind) in [("unknown", "not_found"), ("wrong", "invalid_params")] {
        let told = (&said[step]["is_error"], &said[step]["content"]["kind"]);
        assert_eq!(told, (&json!(true), &json!(kind)), "{said:#}");
        assert!(said[step]["content"]["hint"].is_string(), "{said:#}");
    }
    assert_eq!(said["guidance"]["is_error"], false);
    let together: Vec<String> = said["together"].as_array().unwrap().iter().map(Value::to_string).collect();
    for (answer, word) in together.iter().zip(["5", "what the file says", "Kiwi", "first"]) {
        assert!(answer.contains("\"success\"") && answer.contains(word), "{answer}");
    }
    assert_eq!((&said["cancelled"], &said["after"]["is_error"]), (&json!(true), &json!(false)), "{said:#}");
    assert!(said["seconds"].as_f64().unwrap() < 30.0, "{said:#}");
    // What was cancelled is gone, with everything it started.
    let begun = Instant::now();
    while !processes(&marker(name)).is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(20), "the cancelled tool still runs");
        std::thread::sleep(Duration::from_millis(100));
    }
    let audit = env.audit();
    for tool in [
        "clock.get_current_time",
        "everything.get-sum",
        "files.read_text_file",
        "memory.create_entities",
        "git.git_log",
        "slow",
    ] {
        let entered = audit.iter().any(|line| {
            line["tool"] == tool
                && line["event"] == "enter"
                && line["caller"].as_str().unwrap().starts_with("mcp:")
        });
        assert!(entered, "{tool} left no record");
    }
    let verified = env.run(&["audit", "verify"]);
    assert_eq!(verified.code, 0, "{}", verified.stderr);
}

fn play(env: &TestEnvironment, program: &Path, words: &[&str]) -> String {
    let mut command = Command::new(program);
    let node = components().join("node_modules/node/bin");
    let path = format!("{}:{}", node.display(), std::env::var("PATH").unwrap_or_default());
    command.args(words).current_dir(env.project()).env_clear();
    command.env("PATH", path).env("HOME", env.home()).env("TMPDIR", env.tmp());
    let output = command.output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{err}");
    String::from_utf8(output.stdout).unwrap()
}

const AGENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/agents");
const KIWI: &str = env!("CARGO_BIN_EXE_kiwi");

fn python(environment: &str, name: &str) {
    let env = project(name);
    let (program, script) = (components().join(environment).join("bin/python"), format!("{AGENTS}/agent.py"));
    check(&env, name, &play(&env, &program, &[&script, KIWI, &steps(&env, "pipes")]));
    let served = Served::start(&env, &[]);
    let url = format!("http://127.0.0.1:{}/mcp", served.port);
    check(&env, name, &play(&env, &program, &[&script, &url, &steps(&env, "http")]));
    assert_eq!(served.stop(), Some(0));
}

#[test]
fn the_python_sdk_of_the_new_revision() {
    python("venv", "new");
}

#[test]
fn the_python_sdk_of_the_older_revisions() {
    python("old", "old");
}

#[test]
fn the_typescript_sdk() {
    let env = project("typescript");
    let program = components().join("node_modules/node/bin/node");
    let sdk =
        components().join("node_modules/@modelcontextprotocol/sdk/dist/esm/client").display().to_string();
    let script = format!("{AGENTS}/agent.mjs");
    check(&env, "typescript", &play(&env, &program, &[&script, &sdk, KIWI, &steps(&env, "pipes")]));
    let served = Served::start(&env, &[]);
    let url = format!("http://127.0.0.1:{}/mcp", served.port);
    check(&env, "typescript", &play(&env, &program, &[&script, &sdk, &url, &steps(&env, "http")]));
    assert_eq!(served.stop(), Some(0));
}
