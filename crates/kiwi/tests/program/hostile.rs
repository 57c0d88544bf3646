//! Hostile input of every kind: the specified error, no panic, no hang, nothing left.

use crate::support::{TestEnvironment, processes};
use std::os::unix::fs::symlink;

/// Runs a command and insists on kind, exit code, one JSON object, and the absence of a panic.
#[track_caller]
fn check(env: &TestEnvironment, words: &[&str], kind: &str, code: i32) -> serde_json::Value {
    let (got, out) = env.json(words);
    let found = out["error"]["kind"].as_str().unwrap_or("none");
    assert_eq!((found, got), (kind, code), "{words:?}: {out:#}");
    assert!(!out["error"]["message"].as_str().unwrap().is_empty());
    out
}

fn manifest(id: &str, rest: &str) -> String {
    format!(
        "tool_id: {id}\nversion: \"1.0.0\"\ntool_type: script\nexecutor: bash_runtime\nentrypoint: run.sh\n{rest}"
    )
}

#[test]
fn broken_manifests() {
    let env = TestEnvironment::new();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("bomb", b"tool_id: bomb\na: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\n".to_vec()),
        ("anchor", b"tool_id: &x anchor\nversion: \"1.0.0\"\ntool_type: script\n".to_vec()),
        ("merge", b"tool_id: merge\n<<: {version: \"1.0.0\"}\ntool_type: script\n".to_vec()),
        ("twice", b"tool_id: twice\nversion: \"1.0.0\"\nversion: \"2.0.0\"\n".to_vec()),
        ("huge", [manifest("huge", "description: |\n").into_bytes(), b"  x\n".repeat(2_600_000)].concat()),
        ("latin", b"tool_id: latin\nversion: \"1.0.0\"\ndescription: caf\xe9\n".to_vec()),
        ("deep", [b"tool_id: deep\nx: ".to_vec(), b"[".repeat(200_000)].concat()),
        (
            "float_version",
            b"tool_id: float_version\nversion: 1.0\ntool_type: script\nexecutor: bash_runtime\n".to_vec(),
        ),
        ("octal", manifest("octal", "config: {timeout: 010}\n").into_bytes()),
        ("negative", manifest("negative", "config: {timeout: -5}\n").into_bytes()),
        ("zero", manifest("zero", "config: {timeout: 0}\n").into_bytes()),
        ("endless", manifest("endless", "config: {timeout: 1.0e300}\n").into_bytes()),
        ("other_id", manifest("not_other_id", "").into_bytes()),
        ("bad_semver", manifest("bad_semver", "").replace("1.0.0", "one").into_bytes()),
        ("no_type", b"tool_id: no_type\nversion: \"1.0.0\"\nexecutor: bash_runtime\n".to_vec()),
        (
            "no_executor",
            b"tool_id: no_executor\nversion: \"1.0.0\"\ntool_type: script\nexecutor: null\n".to_vec(),
        ),
        (
            "own_primitive",
            b"tool_id: own_primitive\nversion: \"1.0.0\"\ntool_type: primitive\nexecutor: null\n".to_vec(),
        ),
        ("climbs", manifest("climbs", "").replace("run.sh", "../../../etc/passwd").into_bytes()),
        ("rooted", manifest("rooted", "").replace("run.sh", "/etc/passwd").into_bytes()),
        ("nul", manifest("nul", "").replace("run.sh", "\"a\\0b\"").into_bytes()),
        ("list", b"- tool_id: list\n".to_vec()),
        ("empty", b"".to_vec()),
        ("big_int", manifest("big_int", "config: {x: 99999999999999999999}\n").into_bytes()),
        ("both_places", manifest("both_places", "manifest: {entrypoint: other.sh}\n").into_bytes()),
        (
            "remote_ref",
            manifest("remote_ref", "parameters: {$ref: \"http://127.0.0.1:1/schema.json\"}\n").into_bytes(),
        ),
        ("bad_schema", manifest("bad_schema", "parameters: {type: 7}\n").into_bytes()),
        ("bad_args", manifest("bad_args", "config: {args: text}\n").into_bytes()),
        ("stray", manifest("stray", "config: {args: [\"{nothing}\"]}\n").into_bytes()),
        ("no_entry", manifest("no_entry", "").replace("run.sh", "missing.sh").into_bytes()),
    ];
    for (id, text) in &cases {
        env.write(&format!("tools/{id}/tool.yaml"), text);
        env.write(&format!("tools/{id}/run.sh"), "touch ran\n");
    }
    for (id, _) in &cases {
        check(&env, &["run", id], "invalid_manifest", 2);
    }
    assert!(!env.project().join("ran").exists());
    // One broken manifest never breaks other tools.
    env.write("tools/fine.sh", "echo fine\n");
    assert_eq!(env.run(&["run", "fine"]).stdout, "fine\n");
    assert_eq!(env.run(&["tool", "list"]).code, 0);
    let (_, out) = env.json(&["tool", "check"]);
    let place =
        out["items"].as_array().unwrap().iter().find(|item| item["tool_id"] == "octal").unwrap()["issues"][0]
            .clone();
    assert_eq!(
        (place["line"].as_u64(), place["kind"].as_str()),
        (Some(6), Some("invalid_manifest")),
        "{place}"
    );
}

#[test]
fn chains_that_cannot_be() {
    let env = TestEnvironment::new();
    let link = |id: &str, next: &str| {
        env.write(
            &format!("tools/{id}.yaml"),
            format!("tool_id: {id}\nversion: \"1.0.0\"\ntool_type: runtime\nexecutor: {next}\n"),
        )
    };
    for (id, next) in [("a", "b"), ("b", "c"), ("c", "a"), ("alone", "alone"), ("lost", "nowhere")] {
        link(id, next);
    }
    for i in 0..10 {
        link(&format!("l{i}"), &if i == 9 { "subprocess".to_owned() } else { format!("l{}", i + 1) });
    }
    let out = check(&env, &["run", "a"], "cycle", 2);
    assert!(out["error"]["message"].as_str().unwrap().contains("a → b → c → a"));
    check(&env, &["chain", "alone"], "cycle", 2);
    check(&env, &["run", "l0"], "too_deep", 2);
    check(&env, &["run", "lost"], "not_found", 2);
    check(&env, &["run", "nothing_like_it"], "not_found", 2);
    check(&env, &["run", "Not-An-Id"], "not_found", 2);
    check(&env, &["run", "../../etc/passwd"], "not_found", 2);
    check(&env, &["run", "a@not a version"], "version_conflict", 2);
    check(&env, &["run", "a@^9"], "version_conflict", 2);
}

#[test]
fn names_that_belong_to_others() {
    let env = TestEnvironment::new();
    let own = ["filesystem.read", "shell.run", "subprocess", "kiwi.info"];
    let reserved = ["filesystem.other", "mcp.x", "shell.other"];
    for id in own.iter().chain(&reserved) {
        env.write(&format!("tools/{id}.sh"), "touch ran\n");
    }
    for id in reserved {
        check(&env, &["run", id], "space_violation", 3);
    }
    // What the system has cannot be shadowed, so nobody can stop all chains by a file called `subprocess.sh`.
    assert_eq!(env.json(&["run", "kiwi.info"]).1["result"]["name"], "kiwi");
    check(&env, &["run", "filesystem.read"], "invalid_params", 2);
    check(&env, &["run", "shell.run"], "invalid_params", 2);
    assert_eq!(env.json(&["chain", "subprocess"]).1["valid"], true);
    check(&env, &["run", "subprocess"], "invalid_manifest", 2);
    check(&env, &["tool", "check"], "space_violation", 3);
    assert!(!env.project().join("ran").exists());
    env.write("tools/one/same.sh", "echo 1\n");
    env.write("tools/two/same.sh", "echo 2\n");
    let out = check(&env, &["run", "same"], "ambiguous", 2);
    let message = out["error"]["message"].as_str().unwrap();
    assert!(message.contains("one/same.sh") && message.contains("two/same.sh"), "{message}");
    env.write_user("tools/mine.yaml", "tool_id: mine\nversion: \"1.0.0\"\ntool_type: script\nexecutor: project_only\nconfig: {command: x}\n");
    env.write(
        "tools/project_only.yaml",
        "tool_id: project_only\nversion: \"1.0.0\"\ntool_type: runtime\nexecutor: subprocess\n",
    );
    check(&env, &["run", "mine"], "space_violation", 3);
}

#[test]
fn files_that_are_not_what_they_seem() {
    let env = TestEnvironment::new();
    let outside = crate::support::write(&env.home().join("secret.sh"), "echo secret\n");
    symlink(&outside, env.project().join(".ai/tools/link.sh")).unwrap();
    check(&env, &["run", "link"], "invalid_manifest", 2);
    env.write("tools/pack/tool.yaml", manifest("pack", ""));
    symlink(&outside, env.project().join(".ai/tools/pack/run.sh")).unwrap();
    check(&env, &["run", "pack"], "invalid_manifest", 2);
    let made = env.command(&["--version"]).output().unwrap();
    assert!(made.status.success());
    rustix::fs::mknodat(
        rustix::fs::CWD,
        env.project().join(".ai/tools/pipe.sh"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    check(&env, &["run", "pipe"], "invalid_manifest", 2);
    symlink("loop.sh", env.project().join(".ai/tools/loop.sh")).unwrap();
    check(&env, &["run", "loop"], "invalid_manifest", 2);
}

#[test]
fn parameters_that_do_not_fit() {
    let env = TestEnvironment::new();
    env.write("tools/typed/tool.yaml", manifest("typed", "parameters: {type: object, properties: {n: {type: integer}, s: {type: string}}, required: [n]}\n"));
    env.write("tools/typed/run.sh", "touch ran\n");
    check(&env, &["run", "typed"], "invalid_params", 2);
    check(&env, &["run", "typed", "n=three"], "invalid_params", 2);
    check(&env, &["run", "typed", "--params", r#"{"n": 1, "s": 2}"#], "invalid_params", 2);
    check(&env, &["run", "typed", "--params", r#"{"n": 1, "s": "a\u0000b"}"#], "invalid_params", 2);
    check(&env, &["run", "typed", "--params", "[1]"], "invalid_params", 2);
    check(&env, &["run", "typed", "--params", "{"], "invalid_params", 2);
    check(&env, &["run", "typed", "--params", "@/does/not/exist"], "invalid_params", 2);
    check(&env, &["run", "typed", "no-equals-sign"], "invalid_params", 2);
    check(&env, &["run", "typed", "n=1", "--isolation", "loose"], "usage", 2);
    check(&env, &["run", "--nonsense"], "usage", 2);
    assert!(!env.project().join("ran").exists());
}

#[test]
fn tools_that_misbehave() {
    let env = TestEnvironment::new();
    let marker = format!("9999.{}", std::process::id());
    let tool = |id: &str, config: &str, script: &str| {
        env.write(&format!("tools/{id}/tool.yaml"), manifest(id, &format!("config: {config}\n")));
        env.write(&format!("tools/{id}/run.sh"), script);
    };
    tool("flood", "{timeout: 30, limits: {output: 1000000}}", "yes\n");
    tool("hang", "{timeout: 0.3}", &format!("sleep {marker}\n"));
    tool(
        "fork",
        "{timeout: 0.5}",
        &format!(
            "(setsid sleep {marker} &) ; (sleep {marker} & disown) ; for i in 1 2 3; do sleep {marker} & done; wait\n"
        ),
    );
    tool("killed", "{timeout: 30}", "kill -9 $$\n");
    check(&env, &["run", "flood"], "output_limit", 1);
    check(&env, &["run", "hang"], "timeout", 1);
    check(&env, &["run", "fork"], "timeout", 1);
    let out = check(&env, &["run", "killed"], "tool_failed", 1);
    assert_eq!(out["error"]["details"]["signal"], 9);
    tool("spins", "{timeout: 30, limits: {cpu: 1}}", "while :; do :; done\n");
    let out = check(&env, &["run", "spins"], "tool_failed", 1);
    assert!(out["error"]["hint"].as_str().unwrap().contains("`limits.cpu`"), "{out}");
    let trusted = "{isolation: trusted, limits: {memory: 100000000}}";
    tool("free", trusted, "kill -9 $$\n");
    let out = check(&env, &["run", "free"], "tool_failed", 1);
    assert!(out["error"]["hint"].is_null(), "no limit is held at `trusted`: {out}");
    // A tool that ends well and leaves something behind leaves nothing behind.
    tool("leaves", "{timeout: 30}", &format!("(setsid sleep {marker} > /dev/null 2>&1 &) ; echo done\n"));
    assert_eq!(env.run(&["run", "leaves"]).stdout, "done\n");
    assert_eq!(processes(&format!("sleep {marker}")), Vec::<String>::new());
    assert_eq!(std::fs::read_dir(env.tmp()).unwrap().count(), 0, "a private copy was left behind");
}

#[test]
fn what_is_needed_and_missing_is_refused_before_anything_runs() {
    let env = TestEnvironment::new();
    let tool = |id: &str, rest: &str| {
        env.write(&format!("tools/{id}/tool.yaml"), manifest(id, rest));
        env.write(&format!("tools/{id}/run.sh"), "touch ran\n");
    };
    tool("command", "requires_commands: [no_such_command_here]\n");
    tool("variable", "requires_env: [NO_SUCH_VARIABLE]\n");
    tool("boxed", "isolation: sandboxed\n");
    env.write("tools/program.yaml", "tool_id: program\nversion: \"1.0.0\"\ntool_type: script\nexecutor: subprocess\nconfig: {command: no_such_program_here}\n");
    check(&env, &["run", "command"], "missing_requirement", 3);
    check(&env, &["run", "variable"], "missing_requirement", 3);
    check(&env, &["run", "program"], "missing_requirement", 3);
    // The project is not there at all in a sandbox, unless the tool declares it.
    check(&env, &["run", "boxed"], "tool_failed", 1);
    assert!(!env.project().join("ran").exists());
}

#[test]
fn a_broken_configuration_stops_everything() {
    let env = TestEnvironment::new();
    env.write("tools/fine.sh", "touch ran\n");
    env.write("config/kiwi.toml", "[validation\n");
    check(&env, &["run", "fine"], "invalid_manifest", 2);
    assert!(!env.project().join("ran").exists());
}
