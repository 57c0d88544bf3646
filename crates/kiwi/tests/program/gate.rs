//! What people type about the gate: rules, explanations, replays, trust, questions.

use crate::support::TestEnvironment;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

const SAY: &str = "#!/usr/bin/env bash\n# kiwi: version: \"1.0.0\"\n# kiwi: parameters: {type: object, properties: {text: {type: string}, api_key: {type: string}}}\ncat > /dev/null\necho run >> runs\necho \"$KIWI_PARAM_TEXT\"\n";
const ASK: &str = "rule careful { guards { $tool == \"say\" -> ask \"may it speak?\" } effects { } }";

fn place() -> TestEnvironment {
    let env = TestEnvironment::new();
    env.write("tools/say.sh", SAY);
    env
}

fn runs(env: &TestEnvironment) -> usize {
    std::fs::read_to_string(env.project().join("runs")).unwrap_or_default().lines().count()
}

#[test]
fn rules_are_checked_with_a_pointer_to_every_mistake() {
    let env = place();
    env.write("rules/bad.kappa", "rule a { guards { $tool = \"x\" -> admit } effects { } }\nrule b { guards { now() > 1 -> admit } effects { } }\n");
    let ran = env.run(&["rules", "check"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("project:rules/bad.kappa:1:") && ran.stderr.contains('^'), "{}", ran.stderr);
    let (code, out) = env.json(&["rules", "check"]);
    assert_eq!((code, &out["error"]["kind"]), (2, &json!("invalid_manifest")));
    assert!(!out["error"]["details"]["problems"].as_array().unwrap().is_empty());
    // And as long as they are like that, nothing happens.
    let (code, out) = env.json(&["run", "say"]);
    assert_eq!((code, &out["error"]["details"]["reason"]["policy_id"]), (3, &json!("ruleset")));
    assert_eq!(runs(&env), 0);
}

#[test]
fn the_hash_depends_on_meaning_alone() {
    let env = place();
    let folder = env.project();
    let (a, b) = (
        "rule a { guards { $tool == \"x\" -> admit } effects { } }",
        "rule b { guards { else -> reject \"no\" } effects { } }",
    );
    std::fs::write(folder.join("both.kappa"), format!("{a}\n{b}")).unwrap();
    std::fs::write(folder.join("other.kappa"), format!("# words\n{b}\n\n\n{a}\n")).unwrap();
    std::fs::create_dir(folder.join("split")).unwrap();
    std::fs::write(folder.join("split/1.kappa"), b).unwrap();
    std::fs::write(folder.join("split/2.kappa"), a).unwrap();
    let hash = |words: &[&str]| {
        let ran = env.run(&[&["rules", "hash"], words].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stdout.starts_with("sha256:") && ran.stdout.len() == 72, "{}", ran.stdout);
        ran.stdout
    };
    let one = hash(&["both.kappa"]);
    assert_eq!(one, hash(&["other.kappa"]));
    assert_eq!(one, hash(&["split"]));
    assert_eq!(one, hash(&["split/2.kappa", "split/1.kappa"]));
    assert_ne!(one, hash(&["split/1.kappa"]));
    assert_ne!(one, hash(&[]));
}

#[test]
fn examples_that_do_not_hold_keep_rules_out_of_force() {
    let env = place();
    let rule = |answer: &str| {
        format!(
            "rule r {{ guards {{ $tool == \"say\" -> reject \"no\" else -> admit }} effects {{ }} examples {{ {answer} {{\"tool\": \"say\"}} }} }}"
        )
    };
    env.write("rules/r.kappa", rule("rejects"));
    let (code, out) = env.json(&["rules", "test"]);
    assert_eq!((code, &out["failed"]), (0, &json!(0)), "{out}");
    assert!(out["passed"].as_u64().unwrap() >= 1);
    env.write("rules/r.kappa", rule("admits"));
    assert_eq!(env.run(&["rules", "test"]).code, 2);
    assert_eq!(env.run(&["run", "say"]).code, 3);
}

#[test]
fn explaining_names_every_judge_and_uses_nothing_up() {
    let env = place();
    env.write_user("config/kiwi.toml", "[rates.say]\nminute = 1\n[budget]\ncalls = 1\n");
    env.write(
        "rules/r.kappa",
        "rule r { guards { $args.text == \"no\" -> reject \"not that\" } effects { apply(\"count\", 1) } }",
    );
    for _ in 0..3 {
        let (code, out) = env.json(&["gate", "explain", "say", "text=yes"]);
        assert_eq!((code, &out["answer"], &out["profile"]), (0, &json!("allow"), &json!("cli")), "{out}");
        let judges: Vec<&str> =
            out["judges"].as_array().unwrap().iter().map(|judge| judge["judge"].as_str().unwrap()).collect();
        assert_eq!(judges, ["rules", "permission", "rate_limit", "loop_brake", "budget", "approval"]);
    }
    let (_, out) = env.json(&["gate", "explain", "say", "text=no"]);
    assert_eq!(out["answer"], "deny");
    assert_eq!(
        out["judges"][0]["reasons"][0],
        json!({"judge": "rules", "kind": "rule_rejected", "rule": "r", "rule_reason": "not that"})
    );
    let (_, out) = env.json(&["gate", "explain", "say", "text=yes", "--agent"]);
    assert_eq!((&out["answer"], &out["isolation"]), (&json!("deny"), &json!("sandboxed")), "{out}");
    assert_eq!(runs(&env), 0);
    assert!(env.audit().is_empty(), "explaining is not calling");
    assert_eq!(env.run(&["run", "say", "text=yes"]).code, 0);
}

#[test]
fn readonly_changes_nothing() {
    let env = place();
    env.write(
        "tools/change.sh",
        SAY.replace("# kiwi: version", "# kiwi: mutates_state: true\n# kiwi: version"),
    );
    let (code, out) = env.json(&["run", "change", "--profile", "readonly"]);
    assert_eq!((code, &out["error"]["details"]["reason"]["rule"]), (3, &json!("kiwi_readonly")), "{out}");
    env.write_user("config/kiwi.toml", "[transports]\ncli = \"readonly\"\n");
    assert_eq!(env.run(&["run", "change"]).code, 3);
    assert_eq!(env.run(&["run", "change", "--profile", "cli"]).code, 3, "a profile narrows, it never widens");
    let (code, out) = env.json(&["run", "say", "--profile", "nobody"]);
    assert_eq!((code, &out["error"]["kind"]), (3, &json!("denied")));
    assert_eq!(runs(&env), 0);
}

#[test]
fn recorded_calls_are_judged_by_other_rules_and_never_guessed() {
    let env = place();
    env.write("rules/r.kappa", "rule r { guards { $args.text == \"bad\" -> reject \"no\" } effects { } }");
    for text in ["good", "bad", "fine"] {
        env.run(&["run", "say", &format!("text={text}")]);
    }
    env.run(&["run", "say", "text=secret", "api_key=0123456789"]);
    std::fs::write(
        env.project().join("new.kappa"),
        "rule n { guards { $args.text == \"fine\" -> reject \"no longer\" else -> admit } effects { } }",
    )
    .unwrap();
    let (code, out) = env.json(&["rules", "replay", "--rules", "new.kappa"]);
    assert_eq!(code, 0, "{out}");
    assert_eq!(out["calls"], 4, "{out:#}");
    let changed: Vec<(&Value, &Value)> =
        out["changed"].as_array().unwrap().iter().map(|call| (&call["before"], &call["after"])).collect();
    assert_eq!(changed, [(&json!("deny"), &json!("allow")), (&json!("allow"), &json!("deny"))], "{out:#}");
    assert_eq!(out["undecidable"].as_array().unwrap().len(), 1, "{out:#}");
    let (_, out) = env.json(&["rules", "replay", "--rules", "new.kappa", "--since", "2100-01-01T00:00:00Z"]);
    assert_eq!(out["calls"], 0);
    assert_eq!(env.run(&["rules", "replay", "--rules", "nothing.kappa"]).code, 2);
}

#[test]
fn what_a_person_said_is_no_change_of_rules() {
    let env = place();
    env.write_user("config/kiwi.toml", "[rules]\ndefault = false\n");
    let ask = |name: &str| {
        format!(
            "rule {name} {{ guards {{ $tool == \"say\" -> ask \"may it?\" else -> admit }} effects {{ }} }}"
        )
    };
    env.write("rules/r.kappa", ask("careful"));
    let id = |out: &Value| out["error"]["details"]["id"].as_str().unwrap().to_owned();
    // Asked and rejected; asked and approved; asked where nobody is.
    let rejected = id(&env.json(&["run", "say", "text=a"]).1);
    assert_eq!(env.run(&["reject", &rejected]).code, 0);
    assert_eq!(env.run(&["run", "say", "text=a"]).code, 3);
    let approved = id(&env.json(&["run", "say", "text=b"]).1);
    assert_eq!(env.run(&["approve", &approved]).code, 0);
    assert_eq!(env.run(&["run", "say", "text=b"]).code, 0);
    let unattended = env.command(&["run", "say", "text=c"]).env("CI", "true").output().unwrap();
    assert_eq!(crate::support::ran(&unattended).code, 3);
    std::fs::write(env.project().join("same.kappa"), ask("other")).unwrap();
    for rules in [".ai/rules", "same.kappa"] {
        let (code, out) = env.json(&["rules", "replay", "--rules", rules]);
        assert_eq!((code, &out["calls"], &out["unchanged"]), (0, &json!(5), &json!(5)), "{rules}: {out:#}");
    }
    std::fs::write(env.project().join("none.kappa"), "rule n { guards { else -> admit } effects { } }")
        .unwrap();
    let (_, out) = env.json(&["rules", "replay", "--rules", "none.kappa"]);
    let changed = out["changed"].as_array().unwrap();
    assert!(
        changed.len() == 5 && changed.iter().all(|call| call["before"] == "ask" && call["after"] == "allow"),
        "{out:#}"
    );
}

#[test]
fn every_denial_says_why_to_whom_and_about_what() {
    let env = TestEnvironment::new();
    env.write("tools/echo.yaml", "tool_id: echo\nversion: \"1.0.0\"\ntool_type: api\nconfig: {url: \"http://{a}/echo\"}\nparameters: {type: object, properties: {a: {type: string}}}\n");
    let denied = |words: &[&str]| {
        let (code, out) = env.json(&[&["run", "echo", "a=10.0.0.1"], words].concat());
        let error = &out["error"];
        assert_eq!((code, error["kind"].as_str()), (3, Some("denied")), "{out:#}");
        let details = &error["details"];
        assert_eq!(details["reason"]["kind"], "policy", "{out:#}");
        assert_eq!(details["reason"]["policy_reason"], error["message"], "{out:#}");
        assert_eq!((&details["tool"], &details["http_status"]), (&json!("echo"), &json!(403)), "{out:#}");
        assert!(details["caller"].as_str().unwrap().starts_with("cli:"), "{out:#}");
        details.clone()
    };
    // By the guard of connections, whose own details are kept.
    let guarded = denied(&[]);
    assert_eq!(guarded["reason"]["policy_id"], "permission");
    assert!(
        guarded.as_object().unwrap().values().any(|fact| fact.to_string().contains("10.0.0.1")),
        "{guarded:#}"
    );
    assert_eq!(denied(&["--isolation", "restricted"])["reason"]["policy_id"], "isolation");
}

#[test]
fn a_call_that_asks_waits_for_another_terminal() {
    let env = place();
    env.write("rules/r.kappa", ASK);
    let (code, out) = env.json(&["run", "say", "text=hello"]);
    assert_eq!(
        (code, &out["status"], &out["error"]["kind"]),
        (4, &json!("pending"), &json!("approval_required"))
    );
    let id = out["error"]["details"]["id"].as_str().unwrap().to_owned();
    assert_eq!(
        env.json(&["run", "say", "text=hello"]).1["error"]["details"]["id"],
        json!(id),
        "one question"
    );
    assert_eq!(runs(&env), 0);
    let (_, queue) = env.json(&["reviews"]);
    assert!(queue.to_string().contains(&id), "{queue}");
    assert_eq!(env.run(&["approve", &id]).code, 0);
    assert_eq!(env.run(&["run", "say", "text=other"]).code, 4, "exactly this call");
    let ran = env.run(&["run", "say", "text=hello"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "hello\n"), "{}", ran.stderr);
    assert_eq!(env.run(&["run", "say", "text=hello"]).code, 4, "once");
    let approved = env.audit().into_iter().find(|line| line["event"] == "enter").unwrap();
    assert!(approved["decision"]["approved_by"].is_string(), "{approved}");
    let (_, out) = env.json(&["run", "say", "text=hello"]);
    let id = out["error"]["details"]["id"].as_str().unwrap();
    assert_eq!(env.run(&["reject", id, "--reason", "too loud"]).code, 0);
    let (code, out) = env.json(&["run", "say", "text=hello"]);
    assert_eq!((code, &out["error"]["details"]["reason"]["policy_id"]), (3, &json!("approval")), "{out}");
    assert!(out["error"]["message"].as_str().unwrap().contains("too loud"), "{out}");
    assert_eq!(runs(&env), 1);
}

#[test]
fn waiting_goes_on_when_somebody_answers_and_a_changed_tool_is_another_call() {
    let env = place();
    env.write("rules/r.kappa", ASK);
    for change in [false, true] {
        let text = format!("text=change {change}");
        let mut waiting = env
            .command(&["run", "say", &text, "--wait"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(waiting.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
        let id =
            said.split("kiwi approve ").nth(1).and_then(|rest| rest.split('`').next()).unwrap().to_owned();
        if change {
            env.write("tools/say.sh", SAY.replace("echo run", "echo run # changed"));
        }
        assert_eq!(env.run(&["approve", &id]).code, 0);
        let code = waiting.wait().unwrap().code();
        assert_eq!(code, Some(if change { 3 } else { 0 }), "{said}");
    }
    assert_eq!(runs(&env), 1);
}

#[test]
fn in_ci_only_a_grant_answers() {
    let env = place();
    env.write("rules/r.kappa", ASK);
    let ci = |words: &[&str]| crate::support::ran(&env.command(words).env("CI", "true").output().unwrap());
    assert_eq!(ci(&["run", "say", "text=x"]).code, 3);
    let id = env.json(&["run", "say", "text=x"]).1["error"]["details"]["id"].as_str().unwrap().to_owned();
    assert_eq!(env.run(&["approve", &id, "--remember", "--uses", "2"]).code, 0);
    assert_eq!(ci(&["run", "say", "text=x"]).code, 0);
    assert_eq!(ci(&["run", "say", "text=y"]).code, 3);
    assert_eq!(ci(&["run", "say", "text=x"]).code, 0);
    assert_eq!(ci(&["run", "say", "text=x"]).code, 3, "two uses");
    assert_eq!(runs(&env), 2);
}

#[test]
fn rules_that_are_required_and_gone_refuse() {
    let env = TestEnvironment::bare();
    assert_eq!(env.run(&["init"]).code, 0);
    assert_eq!(env.run(&["run", "greet"]).code, 0);
    std::fs::remove_file(env.project().join(".ai/rules/project.kappa")).unwrap();
    let (code, out) = env.json(&["run", "greet"]);
    assert_eq!((code, &out["error"]["details"]["reason"]["policy_id"]), (3, &json!("ruleset")), "{out}");
}

#[test]
fn trust_is_given_listed_and_taken_back() {
    let env = TestEnvironment::bare();
    assert_eq!(env.run(&["trust", "add"]).code, 2, "there is no project");
    assert_eq!(env.run(&["init"]).code, 0);
    let (_, out) = env.json(&["trust", "list"]);
    assert_eq!(out["projects"].as_array().unwrap().len(), 1, "what was made here is trusted");
    let answer = || env.json(&["gate", "explain", "greet", "--agent"]).1["answer"].clone();
    assert_eq!(answer(), "allow");
    assert_eq!(env.run(&["trust", "remove"]).code, 0);
    assert_eq!(answer(), "deny");
    assert_eq!(env.run(&["trust", "add", "."]).code, 0);
    assert_eq!(answer(), "allow");
    env.write("config/kiwi.toml", "[rules]\nrequired = true\n# changed\n");
    assert_eq!(answer(), "deny");
}
