//! The commands around a call: what they print and how they end.

use crate::support::TestEnvironment;
use serde_json::json;

const DATA_PROCESSOR: &str = "tool_id: data_processor\nversion: \"2.1.0\"\ntool_type: script\nexecutor: python_runtime\nmanifest:\n  language: python\n  entrypoint: process_data.py\n  requires:\n    - pandas>=2.0\n    - numpy\nconfig:\n  timeout: 1800\n  env:\n    PYTHONPATH: \"/app/lib\"\n";

fn data_processor() -> TestEnvironment {
    let env = TestEnvironment::new();
    env.write("tools/data/data_processor/tool.yaml", DATA_PROCESSOR);
    env.write("tools/data/data_processor/process_data.py", "def execute(): pass\n");
    env
}

#[test]
fn the_chain_of_document_000() {
    let env = data_processor();
    let (code, mut out) = env.json(&["chain", "data_processor"]);
    assert_eq!(code, 0, "{out:#}");
    assert_eq!(
        (&out["valid"], &out["issues"], &out["validated_pairs"]),
        (&json!(true), &json!([]), &json!(2))
    );
    let config = out["config"].as_object_mut().unwrap();
    config.remove("venv");
    assert_eq!(
        out["config"],
        json!({"command": "python3", "args": ["-u", "process_data.py"], "env": {"PYTHONPATH": "/app/lib"}, "timeout": 1800})
    );
    let ran = env.run(&["chain", "data_processor"]);
    let marks: Vec<&str> = ran.stdout.lines().filter(|line| line.contains('✓')).collect();
    assert_eq!(marks.len(), 3, "{}", ran.stdout);
    assert!(!ran.stdout.contains('\u{1b}'), "colour without a terminal");
}

#[test]
fn an_invalid_chain_is_shown_whole_and_refused() {
    let env = TestEnvironment::new();
    env.write("tools/processor.yaml", "tool_id: processor\nversion: \"1.0.0\"\ntool_type: runtime\nexecutor: subprocess\nconfig: {command: cat}\ninputs: [json_object]\nvalidation: {child_schemas: [{schema: {}}]}\n");
    env.write("tools/csv_reader.yaml", "tool_id: csv_reader\nversion: \"1.0.0\"\ntool_type: script\nexecutor: processor\noutputs: [json_array]\n");
    let (code, out) = env.json(&["chain", "csv_reader"]);
    assert_eq!(
        (code, &out["valid"], &out["status"], &out["error"]["kind"]),
        (3, &json!(false), &json!("refused"), &json!("chain_invalid"))
    );
    assert_eq!(
        out["issues"],
        json!(["type mismatch: `csv_reader` provides [json_array], `processor` expects [json_object]"])
    );
    assert_eq!(out["chain"].as_array().unwrap().len(), 3);
    let ran = env.run(&["chain", "csv_reader"]);
    assert!(
        ran.stdout.contains('✗') && ran.stderr.contains("error: type mismatch"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
}

#[test]
fn a_bound_that_cannot_be_read_is_an_issue_of_the_chain() {
    let env = TestEnvironment::new();
    env.write(
        "tools/rt.yaml",
        "tool_id: rt\nversion: \"1.0.0\"\ntool_type: runtime\nexecutor: subprocess\nconfig: {command: sh}\n\
         entrypoint_is_file: true\nvalidation: {child_schemas: [{match: {tool_type: script}, schema: {}}]}\n\
         child_constraints: {kid: {min_version: \"1.0.0\", max_version: \"2.0\"}}\n",
    );
    env.write(
        "tools/kid/tool.yaml",
        "tool_id: kid\nversion: \"1.5.0\"\ntool_type: script\nexecutor: rt\nentrypoint: a.sh\n",
    );
    env.write("tools/kid/a.sh", "echo hi\n");
    for words in [&["chain", "kid"][..], &["chain", "kid@^1"]] {
        let (code, out) = env.json(words);
        assert_eq!(
            (code, &out["valid"], &out["error"]["kind"]),
            (3, &json!(false), &json!("chain_invalid")),
            "{out:#}"
        );
        let issue = "`rt` does not accept this version of `kid`: `2.0` is not a semantic version";
        assert_eq!(out["issues"], json!([issue]), "{out:#}");
    }
    assert_eq!(env.run(&["run", "kid"]).code, 3);
    let listed = env.run(&["tool", "check", "rt"]);
    assert!(
        format!("{}{}", listed.stdout, listed.stderr).contains("`2.0` is not a semantic version"),
        "{}{}",
        listed.stdout,
        listed.stderr
    );
}

#[test]
fn anyone_can_recompute_an_integrity() {
    let env = data_processor();
    for tool in ["data_processor", "python_runtime", "subprocess", "kiwi.info"] {
        let ran = env.run(&["tool", "show", tool, "--json"]);
        assert_eq!(ran.code, 0);
        let check = "import hashlib, json, sys\nt = json.load(sys.stdin)\np = {k: t[k] for k in ('tool_id', 'version', 'manifest', 'files')}\nprint('sha256:' + hashlib.sha256(json.dumps(p, sort_keys=True, separators=(',', ':')).encode()).hexdigest() == t['integrity'])\n";
        let mut python = std::process::Command::new("python3")
            .args(["-c", check])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut python.stdin.take().unwrap(), ran.stdout.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(python.wait_with_output().unwrap().stdout).unwrap(), "True\n", "{tool}");
    }
    let (_, shown) = env.json(&["tool", "show", "data_processor"]);
    assert_eq!(
        (&shown["manifest"]["entrypoint"], &shown["manifest"]["manifest"], &shown["executor"]),
        (&json!("process_data.py"), &json!(null), &json!("python_runtime"))
    );
    let paths: Vec<&str> =
        shown["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["process_data.py", "tool.yaml"]);
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let env = data_processor();
    for words in [
        &["completions", "bash"][..],
        &["--help"],
        &["help", "run"],
        &["schema", "manifest"],
        &["tool", "list"],
        &["tool", "list", "--json"],
        &["chain", "data_processor"],
        &["rules", "explain"],
    ] {
        let (read, write) = std::io::pipe().unwrap();
        drop(read);
        let output = env.command(words).stdout(write).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !told.contains("panicked"), "{words:?}: {told}");
    }
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let env = data_processor();
    env.write("tools/say.sh", "echo said\n");
    std::fs::write(env.project().join("queries"), "say\n").unwrap();
    for words in [
        &["completions", "bash"][..],
        &["--help"],
        &["tool", "list"],
        &["tool", "list", "--json"],
        &["audit", "tail", "--json"],
        &["search", "--batch", "queries"],
        &["run", "say"],
        &["run", "say", "--json"],
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = env.command(words).stdout(full).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(70), "{words:?}: {told}");
        assert!(told.contains("not all of the output could be written: No space left"), "{words:?}: {told}");
    }
    assert_eq!(
        env.json(&["audit", "tail"]).1["records"].as_array().unwrap().len(),
        4,
        "both calls were made"
    );
}

#[test]
fn help_in_front_is_help_behind() {
    let env = TestEnvironment::bare();
    for (front, behind) in [
        (&["help"][..], &["--help"][..]),
        (&["help", "run"], &["run", "--help"]),
        (&["help", "lock", "freeze"], &["lockfile", "freeze", "--help"]),
    ] {
        let (front, behind) = (env.run(front), env.run(behind));
        assert_eq!((front.code, front.stdout), (0, behind.stdout));
    }
    let unknown = env.run(&["help", "fly"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("unrecognized subcommand 'fly'"), "{}", unknown.stderr);
}

#[test]
fn shadowing_is_reported() {
    let env = TestEnvironment::new();
    env.write("tools/both.sh", "# kiwi: version: 2.0.0\necho project\n");
    env.write_user("tools/both.sh", "# kiwi: version: 1.0.0\necho user\n");
    assert_eq!(env.run(&["run", "both"]).stdout, "project\n");
    let (_, shown) = env.json(&["tool", "show", "both"]);
    assert_eq!(
        (&shown["shadowed"][0]["space"], &shown["shadowed"][0]["version"]),
        (&json!("user"), &json!("1.0.0"))
    );
    let (_, chain) = env.json(&["chain", "both"]);
    assert!(chain["warnings"].to_string().contains("shadows 1.0.0 of the user space"), "{chain:#}");
}

#[test]
fn init_never_overwrites_and_what_it_makes_runs() {
    let env = TestEnvironment::bare();
    assert_eq!(env.run(&["init"]).code, 0);
    let ran = env.run(&["run", "hello", "name=Ada"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("Ada"), "{}", ran.stdout);
    std::fs::write(env.project().join(".ai/config/kiwi.toml"), "# mine\n").unwrap();
    assert_eq!(env.run(&["init"]).code, 0);
    assert_eq!(std::fs::read_to_string(env.project().join(".ai/config/kiwi.toml")).unwrap(), "# mine\n");
    let ignored = std::fs::read_to_string(env.project().join(".gitignore")).unwrap();
    assert_eq!(ignored.matches(".ai/logs/").count(), 1, "{ignored}");
    let (code, out) = env.json(&["tool", "check"]);
    assert_eq!((code, &out["ok"]), (0, &json!(true)), "{out:#}");
}

#[test]
fn new_tools_of_every_kind_pass_their_check_and_run() {
    let env = TestEnvironment::new();
    for kind in ["python", "bash", "node", "api"] {
        let id = format!("my_{kind}");
        let ran = env.run(&["tool", "new", &id, "--type", kind, "--category", "a/b"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let (code, out) = env.json(&["tool", "check", &id]);
        assert_eq!((code, &out["ok"]), (0, &json!(true)), "{out:#}");
        if kind != "api" {
            assert!(env.run(&["run", &id, "name=Ada"]).stdout.contains("Hello, Ada"));
        }
        assert_eq!(
            env.run(&["tool", "new", &id, "--type", kind, "--category", "a/b"]).code,
            2,
            "it overwrote"
        );
    }
    // Another kind would be another file with the same id.
    let again = env.run(&["tool", "new", "my_bash"]);
    assert!(
        again.code == 2 && again.stderr.contains("`my_bash` is in this project already"),
        "{}",
        again.stderr
    );
    assert_eq!(env.run(&["run", "my_bash", "name=Ada"]).code, 0);
    let (code, out) = env.json(&["tool", "new", "told"]);
    assert_eq!((code, &out["status"], &out["tool_id"]), (0, &json!("success"), &json!("told")), "{out:#}");
    assert!(std::path::Path::new(out["path"].as_str().unwrap()).exists(), "{out:#}");
    assert_eq!(env.json(&["tool", "new", "told"]).1["error"]["kind"], "usage");
    assert_eq!(env.run(&["tool", "new", "Bad-Name"]).code, 2);
    assert_eq!(env.run(&["tool", "new", "kiwi.mine"]).code, 3);
    assert_eq!(env.run(&["tool", "new", "x", "--category", "../.."]).code, 2);
    assert_eq!(TestEnvironment::bare().run(&["tool", "new", "x"]).code, 2);
}

#[test]
fn lists_schemas_completions_and_the_doctor() {
    let env = data_processor();
    let (_, out) = env.json(&["tool", "list"]);
    let ids: Vec<&str> =
        out["tools"].as_array().unwrap().iter().map(|tool| tool["tool_id"].as_str().unwrap()).collect();
    for id in [
        "data_processor",
        "subprocess",
        "http_client",
        "python_runtime",
        "bash_runtime",
        "node_runtime",
        "api_runtime",
        "kiwi_runtime",
    ] {
        assert!(ids.contains(&id), "{id} is not in {ids:?}");
    }
    for what in ["manifest", "lockfile", "config"] {
        let schema: serde_json::Value = serde_json::from_str(&env.run(&["schema", what]).stdout).unwrap();
        assert!(schema["properties"].is_object(), "{what}");
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(env.run(&["completions", shell]).stdout.contains("kiwi"));
    }
    let (code, out) = env.json(&["doctor"]);
    assert_eq!((code, &out["ok"]), (0, &json!(true)), "{out:#}");
    assert!(out["caches"]["chain_misses"].is_u64() && out["checks"].as_array().unwrap().len() >= 10);
    assert_eq!(env.run(&["verify"]).code, 2);
    assert_eq!(env.run(&["--help"]).code, 0);
    assert_eq!(env.run(&["nonsense"]).code, 2);
}

#[test]
fn a_version_can_be_asked_for_and_lenient_needs_the_user() {
    let env = TestEnvironment::new();
    env.write("tools/v.sh", "# kiwi: version: 1.4.2\necho v\n");
    assert_eq!(env.run(&["run", "v@^1.4"]).code, 0);
    assert_eq!(env.run(&["run", "v@1.4.2"]).code, 0);
    assert_eq!(env.json(&["run", "v@1.4.1"]).1["error"]["kind"], "version_conflict");

    env.write("tools/bare.yaml", "tool_id: bare\nversion: \"1.0.0\"\ntool_type: runtime\nexecutor: subprocess\nconfig: {command: cat}\n");
    env.write(
        "tools/on_bare.yaml",
        "tool_id: on_bare\nversion: \"1.0.0\"\ntool_type: script\nexecutor: bare\n",
    );
    assert_eq!(env.json(&["run", "on_bare"]).1["error"]["kind"], "chain_invalid");
    env.write("config/kiwi.toml", "[validation]\nmode = \"lenient\"\n");
    assert_eq!(env.json(&["run", "on_bare"]).1["error"]["kind"], "chain_invalid");
    env.write_user("config/kiwi.toml", "[validation]\nmode = \"lenient\"\n");
    let (code, out) = env.json(&["run", "on_bare"]);
    assert_eq!(code, 0, "{out:#}");
    assert!(out["warnings"].to_string().contains("defines no child_schemas"));
}

#[test]
fn the_demo_shows_what_really_happens_and_leaves_nothing() {
    let env = TestEnvironment::bare();
    let ran = env.run(&["demo"]);
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
    for part in [
        "VERIFIED BYTES RUN",
        "\"kept\": 2",
        "enter",
        "exit",
        "rule `kiwi_permitted`, guard 1 admits",
        "Count words",
    ] {
        assert!(ran.stdout.contains(part), "{part} is not in:\n{}", ran.stdout);
    }
    let told = [
        "integrity mismatch for greeter@1.0.0",
        "`greet.sh` changed",
        "rule `no_passwords` rejects it: that is not for shouting",
        "$ kiwi search",
        "the audit log does not hold",
    ];
    for part in told {
        assert!(ran.stderr.contains(part), "{part} is not in:\n{}", ran.stderr);
    }
    assert_eq!(std::fs::read_dir(env.tmp()).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(env.home()).unwrap().count(), 0);

    // Where something is missing, what ended and how is said as a shell would say it.
    let output = env.command(&["demo"]).env("PATH", "/nonexistent").output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("` ended with 3, not with 0"), "{told}");
    assert!(!told.contains("ExitCode") && told.contains("hint: "), "{told}");
}

#[test]
fn every_character_of_a_document_reaches_whoever_reads_json() {
    let env = TestEnvironment::new();
    let text = "a\u{7f}b\u{1b}[1mc\u{85}\u{200b}";
    env.write("tools/odd.sh", "# kiwi: version: 1.0.0\nprintf '{\"a\":\"x\\177y\"}'\n");
    let manifest = "tool_id: noted\nversion: \"1.0.0\"\ntool_type: bash\nentrypoint: a.sh\nx: [\"a\\u007fb\\u001b[1mc\\u0085\\u200b\"]\n";
    env.write("tools/noted/tool.yaml", manifest);
    env.write("tools/noted/a.sh", "echo\n");
    let (_, out) = env.json(&["tool", "show", "noted"]);
    assert_eq!(out["manifest"]["x"], json!([text]));
    assert_eq!(env.json(&["run", "odd"]).1["result"], json!({"a": "x\u{7f}y"}));
}

#[test]
fn what_is_missing_on_a_command_line_is_named_in_json_too() {
    let env = TestEnvironment::new();
    let told = |words: &[&str]| {
        let (code, out) = env.json(words);
        assert_eq!((code, &out["error"]["kind"]), (2, &json!("usage")), "{out:#}");
        out["error"]["message"].as_str().unwrap().to_owned()
    };
    assert_eq!(told(&["run"]), "the following required arguments were not provided: <TOOL>");
    assert_eq!(told(&["run", "a", "--no-such"]), "unexpected argument '--no-such' found");
}

#[test]
fn what_stands_in_the_way_of_a_project_is_told_with_a_way_out() {
    let env = TestEnvironment::bare();
    std::fs::write(env.project().join(".ai"), "a file\n").unwrap();
    let ran = env.run(&["init"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: a file lies where a folder belongs: move it away"), "{}", ran.stderr);
}
