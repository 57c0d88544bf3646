//! `kiwi audit`: what is recorded, who can read it, and that nobody can change it unseen.

use crate::support::{TestEnvironment, ran};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// The session files, in the order of their names: sessions are named in the order of time.
fn files(env: &TestEnvironment) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for day in std::fs::read_dir(env.project().join(".ai/logs/audit")).unwrap().flatten() {
        files.extend(std::fs::read_dir(day.path()).unwrap().flatten().map(|file| file.path()));
    }
    files.sort();
    files
}

fn head(env: &TestEnvironment) -> PathBuf {
    let mut heads = std::fs::read_dir(env.home().join(".ai/audit/heads")).unwrap().flatten();
    heads.next().unwrap().path()
}

/// A project with a tool, called three times: well, badly, and under a name that is nobody's.
fn used() -> TestEnvironment {
    let env = TestEnvironment::new();
    env.write("tools/say.sh", "echo \"$KIWI_PARAM_TEXT\"; exit \"${KIWI_PARAM_CODE:-0}\"\n");
    assert_eq!(env.run(&["run", "say", "text=good"]).code, 0);
    assert_eq!(env.run(&["run", "say", "text=bad", "code=4"]).code, 1);
    assert_eq!(env.run(&["run", "nothing"]).code, 2);
    env
}

#[track_caller]
fn findings(env: &TestEnvironment, code: i32) -> Vec<Value> {
    let (exit, out) = env.json(&["audit", "verify"]);
    assert_eq!(exit, code, "{out:#}");
    assert_eq!(out["status"], if code == 0 { "success" } else { "refused" });
    let kind = &out["error"]["kind"];
    assert_eq!(kind, &if code == 0 { Value::Null } else { json!("integrity_mismatch") });
    out["findings"].as_array().unwrap().clone()
}

#[test]
fn the_log_of_a_project_is_read_in_every_way() {
    let env = used();
    let (code, out) = env.json(&["audit", "tail"]);
    assert_eq!(code, 0);
    let events: Vec<&str> =
        out["records"].as_array().unwrap().iter().map(|it| it["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["enter", "exit", "enter", "exit", "request"]);
    assert_eq!(env.json(&["audit", "tail", "-n", "2"]).1["records"].as_array().unwrap().len(), 2);
    let text = env.run(&["audit", "tail"]);
    assert_eq!((text.code, text.stdout.lines().count()), (0, 5), "{}", text.stdout);

    let first = &out["records"][0];
    let (session, call) = (first["session"].as_str().unwrap(), first["call"].as_str().unwrap());
    for what in [session, call, call.split_at(13).0, first["hash"].as_str().unwrap()] {
        let (code, shown) = env.json(&["audit", "show", what]);
        assert_eq!((code, shown["records"].as_array().unwrap().len()), (0, 2), "{what}");
        assert_eq!(shown["records"][0], *first);
    }
    // Sessions of the same minute begin alike: of three at least two.
    let mut sessions: Vec<&str> =
        out["records"].as_array().unwrap().iter().map(|it| it["session"].as_str().unwrap()).collect();
    sessions.dedup();
    let alike = sessions.windows(2).find(|pair| pair[0][..8] == pair[1][..8]).unwrap();
    let (code, several) = env.json(&["audit", "show", &alike[0][..8]]);
    assert_eq!((code, &several["error"]["kind"]), (2, &json!("ambiguous")));
    let listed = several["error"]["details"]["sessions"].as_array().unwrap();
    assert!(alike.iter().all(|session| listed.contains(&json!(session))), "{listed:?}");
    let (code, missing) = env.json(&["audit", "show", "nobody"]);
    assert_eq!((code, &missing["error"]["kind"]), (2, &json!("not_found")));

    let (code, verified) = env.json(&["audit", "verify"]);
    assert_eq!((code, &verified["records"], &verified["files"]), (0, &json!(5), &json!(3)), "{verified:#}");
    assert!(env.run(&["audit", "verify"]).stdout.contains("5 records in 3 files hold"));
    assert_eq!(env.json(&["audit", "unfinished"]).1["unfinished"], json!([]));
}

#[test]
fn an_empty_log_is_whole_and_looking_makes_none() {
    let env = TestEnvironment::new();
    assert_eq!(findings(&env, 0), Vec::<Value>::new());
    for words in [&["audit", "tail"][..], &["audit", "unfinished"], &["audit", "export"]] {
        assert_eq!((env.run(words).code, env.run(words).stdout), (0, String::new()), "{words:?}");
    }
    assert!(!env.project().join(".ai/logs").exists() && !env.home().join(".ai").exists());
}

#[test]
fn the_log_is_exported_in_the_forms_that_others_read() {
    let env = used();
    let export = |words: &[&str]| {
        let ran = env.run(&[&["audit", "export"], words].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stdout
    };
    let whole: String = files(&env).iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    assert_eq!(export(&["--format", "jsonl"]), whole);
    assert_eq!(export(&["--since", "1h"]), whole);
    assert_eq!(export(&["--until", "1h"]), "");
    assert_eq!(export(&["--since", "2026-01-01T00:00:00Z", "--until", "2026-01-01T00:00:01Z"]), "");
    assert_eq!(env.run(&["audit", "export", "--since", "soon"]).code, 2);

    let csv = export(&["--format", "csv"]);
    assert_eq!(csv.lines().count(), 6);
    assert!(csv.starts_with("file,seq,at,session,") && csv.contains(",tool_failed,"), "{csv}");

    let trace: Value = serde_json::from_str(&export(&["--format", "otel"])).unwrap();
    let spans = trace["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone();
    assert_eq!(spans.len(), 3);
    for (span, status) in spans.iter().zip([1, 2, 2]) {
        assert_eq!(
            (span["traceId"].as_str().unwrap().len(), span["spanId"].as_str().unwrap().len()),
            (32, 16)
        );
        assert_eq!(span["status"]["code"], status, "{span:#}");
        let time = |name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"));
        assert!(time("startTimeUnixNano") > 1_700_000_000_000_000_000);
    }
    assert!(spans[0]["endTimeUnixNano"] != spans[0]["startTimeUnixNano"]);

    let to = env.project().join("statements.jsonl");
    assert_eq!(export(&["--format", "in-toto", "--output", "statements.jsonl"]), "");
    let statements: Vec<Value> = std::fs::read_to_string(to)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(statements.len(), 3);
    let lines = env.audit();
    for (statement, line) in statements.iter().zip([&lines[0], &lines[2], &lines[4]]) {
        assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
        let digest =
            line.get("integrity").unwrap_or(&line["hash"]).as_str().unwrap().trim_start_matches("sha256:");
        assert_eq!(statement["subject"][0]["digest"]["sha256"], digest);
        assert_eq!(statement["predicate"]["started_at"], line["at"]);
    }
    assert_eq!(statements[0]["subject"][0]["name"], "say");
    assert_eq!(statements[0]["predicate"]["result"]["ok"], true);
    assert_eq!(statements[1]["predicate"]["result"]["kind"], "tool_failed");
}

#[test]
fn parameters_are_recorded_without_secrets_and_their_hash_is_over_all() {
    let env = TestEnvironment::new();
    env.write("tools/deploy/tool.yaml", "tool_id: deploy\nversion: \"1.0.0\"\ntool_type: bash\nexecutor: {entrypoint: a.sh}\nparameters: {type: object, properties: {pin: {type: integer, writeOnly: true}}}\n");
    env.write("tools/deploy/a.sh", "echo done\n");
    let params = json!({
        "pin": 4_711_081_547_i64, "api_key": "hunter-two", "target": "https://me:pass@host/x", "note": "plain",
        "list": ["ghp_0123456789abcdefghijABCDEFGHIJ012345"],
    });
    let text = params.to_string();
    assert_eq!(
        env.run(&["run", "deploy", "--params", &text]).code,
        0,
        "{}",
        env.run(&["run", "deploy", "--params", &text]).stderr
    );
    let line = &env.audit()[0];
    let veil = "<redacted>";
    assert_eq!(
        line["params"],
        json!({"pin": veil, "api_key": veil, "target": veil, "note": "plain", "list": [veil]})
    );
    assert_eq!(line["redacted"], json!(["/api_key", "/list/0", "/pin", "/target"]));
    let whole = kiwi_model::Digest::of(kiwi_model::canonical(&params).unwrap().as_bytes());
    assert_eq!(line["params_hash"], json!(whole));
    for file in files(&env).into_iter().chain([head(&env)]) {
        let text = std::fs::read_to_string(file).unwrap();
        assert!(
            !["4711081547", "hunter", "pass@", "ghp_"].iter().any(|secret| text.contains(secret)),
            "{text}"
        );
    }
}

#[test]
fn whatever_is_changed_is_found_and_located_and_exits_three() {
    let env = used();
    let file = files(&env)[1].clone();
    let name = format!(
        "{}/{}",
        file.parent().unwrap().file_name().unwrap().to_str().unwrap(),
        file.file_name().unwrap().to_str().unwrap()
    );
    let whole = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let check = |text: &str, kind: &str, line: u64| {
        std::fs::write(&file, text).unwrap();
        let found = findings(&env, 3);
        assert_eq!(
            (&found[0]["kind"], &found[0]["file"], &found[0]["line"]),
            (&json!(kind), &json!(name), &json!(line))
        );
        let shown = env.run(&["audit", "verify"]);
        assert_eq!(shown.code, 3);
        assert!(shown.stdout.contains(&format!("`{name}` line {line}")), "{}", shown.stdout);
        std::fs::write(&file, &whole).unwrap();
    };
    check(&whole.replacen("\"say\"", "\"bay\"", 1), "edited", 1);
    check(&whole.replacen(',', ", ", 1), "edited", 1);
    check(&format!("{}\n", lines[0]), "cut_off", 2);
    check(&format!("{}\n", lines[1]), "missing", 1);
    check(&format!("{}\n{}\n", lines[1], lines[0]), "moved", 1);
    check(&format!("{whole}{}\n", lines[1]), "foreign", 3);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(findings(&env, 3)[0]["kind"], "file_missing");
    std::fs::write(&file, &whole).unwrap();
    assert_eq!(findings(&env, 0), Vec::<Value>::new());

    // The newest file, the journal, and everything at once.
    let newest = files(&env).pop().unwrap();
    let bytes = std::fs::read(&newest).unwrap();
    std::fs::remove_file(&newest).unwrap();
    assert_eq!(findings(&env, 3)[0]["kind"], "file_missing");
    std::fs::write(&newest, bytes).unwrap();
    let head = head(&env);
    let vouched = std::fs::read(&head).unwrap();
    std::fs::remove_file(&head).unwrap();
    assert_eq!(findings(&env, 3)[0]["kind"], "head_missing");
    std::fs::write(&head, vouched).unwrap();
    let journal = env.project().join(".ai/logs/audit.journal");
    let entries = std::fs::read(&journal).unwrap();
    std::fs::remove_file(&journal).unwrap();
    assert_eq!(findings(&env, 3)[0]["kind"], "cut_off");
    std::fs::write(&journal, entries).unwrap();
    assert_eq!(findings(&env, 0), Vec::<Value>::new());
    std::fs::remove_dir_all(env.project().join(".ai/logs")).unwrap();
    assert_eq!(findings(&env, 3)[0]["kind"], "cut_off");
    // Calls go on, and what is gone stays gone.
    assert_eq!(env.run(&["run", "say", "text=more"]).code, 0);
    assert_eq!(findings(&env, 3)[0]["kind"], "missing");
}

#[test]
fn a_disk_that_is_full_refuses_the_call() {
    let env = used();
    env.write("tools/mark.sh", "touch ran\n");
    let kiwi = env!("CARGO_BIN_EXE_kiwi");
    let limited = |blocks: usize| {
        let mut command = env.command(&[]);
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec {kiwi} run mark --json");
        let mut bash = Command::new("bash");
        bash.args(["-c", &script]).current_dir(env.project()).env_clear();
        bash.envs(command.stdin(Stdio::null()).get_envs().filter_map(|(name, value)| Some((name, value?))));
        ran(&bash.output().unwrap())
    };
    let sizes = |path: PathBuf| std::fs::metadata(path).unwrap().len();
    // The head is longer than that already.
    assert!(sizes(head(&env)) > 4096);
    let refused = limited(1);
    let out: Value = serde_json::from_str(&refused.stdout).unwrap_or_else(|_| panic!("{}", refused.stdout));
    assert_eq!((refused.code, &out["error"]["kind"]), (3, &json!("denied")), "{out:#}");
    let reason = &out["error"]["details"]["reason"];
    assert_eq!((&reason["kind"], &reason["policy_id"]), (&json!("policy"), &json!("audit")));
    assert!(!env.project().join("ran").exists());
    assert_eq!(findings(&env, 0), Vec::<Value>::new());
    // The head has room, the journal has not: what was begun is taken back.
    let journal = env.project().join(".ai/logs/audit.journal");
    for _ in 0..40 {
        env.run(&["run", "nothing"]);
    }
    assert_eq!(findings(&env, 0), Vec::<Value>::new());
    let blocks = usize::try_from(sizes(journal) / 1024).unwrap();
    let refused = limited(blocks);
    assert_eq!(refused.code, 3, "{}", refused.stdout);
    assert!(!env.project().join("ran").exists());
    assert_eq!(findings(&env, 0), Vec::<Value>::new());
    assert_eq!(env.run(&["run", "mark"]).code, 0);
    assert!(env.project().join("ran").exists());
    assert_eq!(findings(&env, 0), Vec::<Value>::new());
}

#[test]
fn a_call_whose_anchor_cannot_be_written_does_not_happen() {
    let env = used();
    env.write("tools/mark.sh", "touch ran\n");
    let folder = env.tmp().join("elsewhere");
    let anchor = folder.join("anchor");
    env.write_user("config/kiwi.toml", format!("[audit]\nanchor = {:?}\n", anchor.display().to_string()));
    let (code, out) = env.json(&["run", "mark"]);
    let error = &out["error"];
    assert_eq!((code, &error["details"]["reason"]["policy_id"]), (3, &json!("audit")), "{out:#}");
    assert!(error["message"].as_str().unwrap().contains(&anchor.display().to_string()), "{out:#}");
    assert!(error["hint"].as_str().unwrap().contains("`audit.anchor`"), "{out:#}");
    assert!(!env.project().join("ran").exists());
    let found = findings(&env, 3);
    assert_eq!(found[0]["kind"], "anchor");
    assert!(found[0]["message"].as_str().unwrap().contains("every call is refused"), "{found:?}");
    std::fs::create_dir(&folder).unwrap();
    assert!(findings(&env, 3)[0]["message"].as_str().unwrap().ends_with("the next call begins one"));
    assert_eq!(env.run(&["run", "mark"]).code, 0);
    assert!(
        env.project().join("ran").exists() && std::fs::read_to_string(&anchor).unwrap().contains("signature")
    );
    assert_eq!(findings(&env, 0), Vec::<Value>::new());
}

#[test]
fn a_call_that_cannot_be_planned_is_recorded_with_what_is_known_of_it() {
    let env = TestEnvironment::new();
    env.write("tools/deploy/tool.yaml", "tool_id: deploy\nversion: \"1.0.0\"\ntool_type: bash\nexecutor: {entrypoint: a.sh}\nparameters: {type: object, additionalProperties: false, properties: {pin: {type: integer, writeOnly: true}, name: {type: string}}}\n");
    env.write("tools/deploy/a.sh", "echo done\n");
    assert_eq!(env.run(&["run", "deploy", "name=x", "pin=4711081547"]).code, 0);
    let params = json!({"name": "x", "pin": 4_711_081_547_i64, "pinn": 4_712_081_547_i64});
    let (code, out) = env.json(&["run", "deploy", "--params", &params.to_string()]);
    assert_eq!((code, &out["error"]["kind"]), (2, &json!("invalid_params")), "{out:#}");
    let unknown = json!({"text": "hunter-two"});
    assert_eq!(env.run(&["run", "nosuch", "--params", &unknown.to_string()]).code, 2);
    let hash =
        |params: &Value| json!(kiwi_model::Digest::of(kiwi_model::canonical(params).unwrap().as_bytes()));
    let lines = env.audit();
    let (entered, failed) = (
        &lines[0],
        lines.iter().find(|line| line["event"] == "request" && line["tool"] == "deploy").unwrap(),
    );
    let veil = "<redacted>";
    assert_eq!(failed["params"], json!({"name": "x", "pin": veil, "pinn": veil}));
    assert_eq!(failed["redacted"], json!(["/pin", "/pinn"]));
    assert_eq!(failed["params_hash"], hash(&params));
    assert_eq!(entered["tool"], "deploy");
    for known in ["tool", "version", "integrity", "chain_hash", "chain"] {
        assert!(!failed[known].is_null());
        assert_eq!(failed[known], entered[known], "{known}");
    }
    // Whether anything of it is a secret nobody can tell.
    let nobody = lines.iter().find(|line| line["tool"] == "nosuch").unwrap();
    assert_eq!((&nobody["params"], &nobody["params_hash"]), (&Value::Null, &hash(&unknown)));
    for file in files(&env).into_iter().chain([head(&env)]) {
        let text = std::fs::read_to_string(file).unwrap();
        assert!(!["4711081547", "4712081547", "hunter"].iter().any(|secret| text.contains(secret)), "{text}");
    }
    assert_eq!(findings(&env, 0), Vec::<Value>::new());
}

#[test]
fn without_a_user_space_nothing_runs() {
    let env = TestEnvironment::new();
    env.write("tools/mark.sh", "touch ran\n");
    let out = ran(&env.command(&["run", "mark", "--json"]).env_remove("HOME").output().unwrap());
    let outcome: Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(
        (out.code, &outcome["error"]["details"]["reason"]["policy_id"]),
        (3, &json!("audit")),
        "{outcome:#}"
    );
    assert!(!env.project().join("ran").exists());
}

#[test]
fn where_nobody_logged_in_the_account_is_recorded() {
    let env = TestEnvironment::new();
    env.write("tools/mark.sh", "true\n");
    let account = std::process::Command::new("id").arg("-un").output().unwrap();
    let name = match String::from_utf8(account.stdout).unwrap().trim() {
        "" => format!("uid-{}", rustix::process::getuid().as_raw()),
        name => name.to_owned(),
    };
    for login in [None, Some("")] {
        let mut command = env.command(&["run", "mark"]);
        command.env_remove("USER").envs(login.map(|login| ("USER", login)));
        assert_eq!(ran(&command.output().unwrap()).code, 0);
    }
    let callers: Vec<Value> = env.audit().into_iter().map(|line| line["caller"].clone()).collect();
    assert_eq!(callers, vec![json!(format!("cli:{name}")); 4]);
}

#[test]
fn processes_that_write_at_once_take_turns() {
    let env = TestEnvironment::new();
    env.write("tools/say.sh", "echo hello\n");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..12).for_each(|_| assert_eq!(env.run(&["run", "say"]).code, 0)));
        }
        scope.spawn(|| (0..10).for_each(|_| assert_eq!(findings(&env, 0), Vec::<Value>::new())));
    });
    let (_, out) = env.json(&["audit", "verify"]);
    assert_eq!((&out["records"], &out["files"]), (&json!(96), &json!(48)), "{out:#}");
}

#[test]
fn followers_see_what_comes() {
    let env = used();
    let mut command = env.command(&["audit", "tail", "-n", "1", "--follow", "--json"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let (said, heard) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            let _ = said.send(serde_json::from_str::<Value>(&line).unwrap()["event"].clone());
        }
    });
    // Not for ever: whatever does not come is not there.
    let next = || heard.recv_timeout(Duration::from_secs(10)).unwrap_or_default();
    let first = next();
    env.run(&["run", "say", "text=more"]);
    let more = [next(), next()];
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap();
    assert_eq!((first, more), (json!("request"), [json!("enter"), json!("exit")]));
}
