//! Tools of upstream servers are tools like any other: planned, judged, locked, recorded; and what a server changes
//! waits for a person.

use crate::support::TestEnvironment;
use crate::support::kernel::kernel;
use crate::support::mcp::{Pipe, trusted};
use kiwi_model::ToolRef;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A project with one upstream server, named `up`, whose tools the test decides about.
struct Place {
    env: TestEnvironment,
    tools: PathBuf,
}

fn tool(name: &str, description: &str) -> Value {
    let properties = json!({"text": {"type": "string"}, "count": {"type": "integer"}});
    json!({"name": name, "description": description, "inputSchema": {"type": "object", "properties": properties}})
}

impl Place {
    fn entry(&self, more: &str) -> String {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/upstream.py");
        let tools = self.tools.display();
        format!("mcps:\n  up: {{command: python3, args: [{script:?}, \"{tools}\"]{more}}}\n")
    }

    /// Named by the user.
    fn new(offered: &[Value]) -> Self {
        let env = TestEnvironment::new();
        let place = Self { tools: env.tmp().join("tools.json"), env };
        place.offer(offered);
        place.env.write_user("config/mcp_registry.yaml", place.entry(""));
        place
    }

    fn offer(&self, offered: &[Value]) {
        std::fs::write(&self.tools, json!(offered).to_string()).unwrap();
    }

    /// What reached the server.
    fn log(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.env.tmp().join("tools.json.log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    fn calls(&self) -> usize {
        self.log().iter().filter(|line| line.starts_with("call")).count()
    }
}

#[test]
fn an_upstream_tool_is_a_chain_that_is_planned_recorded_and_called() {
    let place = Place::new(&[tool("say-It", "Says it"), tool("fail", "Fails")]);
    let (code, out) = place.env.json(&["run", "up.say-It", "text=hi", "count=2"]);
    assert_eq!((code, &out["result"]), (0, &json!("say-It: {\"count\": 2, \"text\": \"hi\"}")), "{out:#}");
    let chain: Vec<&str> =
        out["chain"].as_array().unwrap().iter().map(|link| link["tool_id"].as_str().unwrap()).collect();
    assert_eq!(chain, ["up.say-It", "mcp_stdio_runtime", "subprocess"]);
    let events: Vec<Value> =
        place.env.audit().iter().map(|line| json!([line["event"], line["tool"]])).collect();
    assert_eq!(events, [json!(["enter", "up.say-It"]), json!(["exit", "up.say-It"])]);

    let (code, out) = place.env.json(&["run", "up.fail"]);
    assert_eq!((code, &out["error"]["kind"]), (1, &json!("tool_failed")));
    assert_eq!(out["error"]["message"], "`fail` says that it failed: no luck");
    assert_eq!(out["content"]["content"][0]["text"], "no luck\nat all");

    let (code, out) = place.env.json(&["run", "up.say-It", "count=many"]);
    assert_eq!((code, &out["error"]["kind"]), (2, &json!("invalid_params")), "{out:#}");
    let (code, out) = place.env.json(&["run", "up.other"]);
    assert_eq!((code, &out["error"]["kind"]), (2, &json!("not_found")), "{out:#}");
    assert_eq!(place.calls(), 2);
}

#[test]
fn a_server_that_nobody_has_asked_yet_is_asked_by_the_first_call() {
    let place = Place::new(&[tool("say", "Says it")]);
    trusted(&place.env);
    let mut pipe = Pipe::old(&place.env, &["--direct"], json!({}));
    let said = pipe.call("up.say", json!({"text": "hi"}));
    assert_eq!(said["content"][0]["text"], "say: {\"text\": \"hi\"}", "{said:#}");
    assert_eq!(pipe.request("tools/call", json!({"name": "up.other"}))["error"]["code"], -32602);
    assert_eq!(pipe.leave(), Some(0));
    // Of one that cannot be asked, nobody says that it has no such tool.
    let place = Place::new(&[]);
    trusted(&place.env);
    place.env.write_user("config/mcp_registry.yaml", "mcps:\n  up: {command: /bin/false, args: []}\n");
    let mut pipe = Pipe::old(&place.env, &["--direct"], json!({}));
    let failed = pipe.call("up.say", json!({}));
    assert_eq!(failed["structuredContent"]["kind"], "upstream_unavailable", "{failed:#}");
    assert_eq!(pipe.leave(), Some(0));
}

/// So many plans in a row, and a process that stays remembers them.
const MANY: usize = 60;

#[test]
fn a_plan_is_remembered_until_something_changes_that_it_was_made_from() {
    let env = TestEnvironment::new();
    env.write("tools/own.sh", "#!/usr/bin/env bash\n# kiwi: version: \"1.0.0\"\ntrue\n");
    env.write_user("config/kiwi.toml", "");
    let kernel = kernel(&env);
    let planned = |tool: &str| kernel.planned(&ToolRef::parse(tool).unwrap(), None).unwrap();
    let is_remembered = |tool: &str| Arc::ptr_eq(&planned(tool), &planned(tool));
    // Who makes a call or two plans each.
    assert!(!is_remembered("filesystem.read"));
    for change in ["lockfiles/x@1.0.0.lock.json", "tools/more/x.sh", "config/kiwi.toml"] {
        drop((0..MANY).map(|_| planned("filesystem.read")).collect::<Vec<_>>());
        assert!(is_remembered("filesystem.read"), "{change}");
        // What lies in files is read for every call.
        assert!(!is_remembered("own"), "{change}");
        let before = planned("filesystem.read");
        env.write(change, "");
        assert!(!Arc::ptr_eq(&before, &planned("filesystem.read")), "{change}");
    }
}

#[test]
fn a_server_that_stays_sees_what_others_change_between_two_calls() {
    let place = Place::new(&[tool("say", "Says it")]);
    place.env.write_user("config/kiwi.toml", "[rates]\n\"@mcp\" = { session = 10000, minute = 10000 }\n");
    trusted(&place.env);
    let mut pipe = Pipe::old(&place.env, &["--direct"], json!({}));
    let mut count = 0;
    let mut call = |pipe: &mut Pipe| {
        count += 1;
        let said = pipe.call("up.say", json!({"count": count}));
        assert!(said["content"][0]["text"].as_str().is_some_and(|text| !text.is_empty()), "{said:#}");
        said["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    };
    let mut many = |pipe: &mut Pipe| (0..MANY).map(|_| call(pipe)).collect::<Vec<_>>();
    let is_upstream = |said: &Vec<String>| said.iter().all(|said| said.starts_with("say: "));
    assert!(is_upstream(&many(&mut pipe)));
    // A tool of the project comes before the server's.
    let own =
        place.env.write("tools/up.say.sh", "#!/usr/bin/env bash\n# kiwi: version: \"1.0.0\"\necho own\n");
    let said = many(&mut pipe);
    assert!(said.iter().all(|said| said.contains("own")), "{said:?}");
    std::fs::remove_file(own).unwrap();
    assert!(is_upstream(&many(&mut pipe)));
    // Another process agrees to the chain: from then on records say so.
    let locked = |line: &Value| line["lockfile"]["agrees"] == json!(true);
    assert!(!place.env.audit().iter().any(locked));
    assert_eq!(place.env.run(&["lockfile", "freeze", "up.say"]).code, 0);
    let lines = place.env.audit().len();
    assert!(is_upstream(&many(&mut pipe)));
    assert_eq!(place.env.audit().iter().filter(|line| locked(line)).count(), MANY * 2);
    assert_eq!(place.env.audit().len(), lines + MANY * 2);
    // What it offers has changed, and somebody else's process found out: what is in quarantine is not there, also for who
    // has just seen it in a list.
    let begun = Instant::now();
    loop {
        let listed = pipe.request("tools/list", json!({}));
        if listed["result"]["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "up.say") {
            break;
        }
        assert!(begun.elapsed() < Duration::from_mins(1), "{listed:#}");
        std::thread::sleep(Duration::from_millis(100));
    }
    place.offer(&[tool("say", "Says it, and more")]);
    place.env.run(&["mcp", "refresh", "up"]);
    let calls = place.calls();
    let refused = pipe.request("tools/call", json!({"name": "up.say", "arguments": {}}));
    assert_eq!(refused["error"]["code"], -32602, "{refused:#}");
    assert_eq!(place.calls(), calls);
    assert_eq!(pipe.leave(), Some(0));
}

#[test]
fn a_dry_run_says_what_would_be_asked_and_asks_nothing() {
    let place = Place::new(&[tool("say", "Says it")]);
    let (code, out) = place.env.json(&["run", "up.say", "text=hi", "--dry-run"]);
    assert_eq!(code, 0, "{out:#}");
    let would = json!({"server": "up", "method": "tools/call", "params": {"name": "say", "arguments": {"text": "hi"}}});
    assert_eq!(out["result"]["would"], would);
    assert_eq!(place.calls(), 0);
}

#[test]
fn what_a_server_changes_waits_for_a_person_across_restarts() {
    let place = Place::new(&[tool("say", "Says it"), tool("other", "Does something else")]);
    assert_eq!(place.env.json(&["run", "up.say"]).0, 0);
    place.offer(&[tool("say", "Says it, and more"), tool("other", "Does something else")]);
    for _ in 0..2 {
        let (code, out) = place.env.json(&["run", "up.say"]);
        assert_eq!((code, &out["error"]["kind"]), (3, &json!("integrity_mismatch")), "{out:#}");
        assert!(out["error"]["message"].as_str().unwrap().contains("quarantine"), "{out:#}");
        assert!(out["error"]["hint"].as_str().unwrap().contains("kiwi mcp review up"), "{out:#}");
    }
    // What did not change goes on.
    assert_eq!(place.env.json(&["run", "up.other"]).0, 0);
    // What is as it was needs nobody.
    place.offer(&[tool("say", "Says it"), tool("other", "Does something else")]);
    assert_eq!(place.env.json(&["run", "up.other"]).0, 0);
    assert_eq!(place.env.json(&["run", "up.say"]).0, 0);
    // New tools and other names wait as well.
    place.offer(&[tool("speak", "Says it"), tool("other", "Does something else"), tool("newer", "Is new")]);
    assert_eq!(place.env.json(&["run", "up.other"]).0, 0);
    for id in ["up.speak", "up.newer"] {
        let (code, out) = place.env.json(&["run", id]);
        assert_eq!((code, &out["error"]["kind"]), (3, &json!("integrity_mismatch")), "{id}: {out:#}");
    }
    assert_eq!(
        place.log().iter().filter(|line| ["call speak", "call newer"].contains(&line.as_str())).count(),
        0
    );
}

#[test]
fn a_lockfile_holds_the_definition() {
    let place = Place::new(&[tool("say", "Says it")]);
    assert_eq!(place.env.json(&["run", "up.say"]).0, 0);
    let ran = place.env.run(&["lockfile", "freeze", "up.say"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let lock = std::fs::read_to_string(place.env.project().join(".ai/lockfiles/mcp/up.say@1.0.0.lock.json"))
        .unwrap();
    let lock: Value = serde_json::from_str(&lock).unwrap();
    assert_eq!(lock["upstream"]["description"], "Says it");
    assert_eq!(place.env.json(&["run", "up.say", "--lock", "strict"]).0, 0);
    // Agreed to by a person, and still not what was frozen.
    place.offer(&[tool("say", "Says it otherwise")]);
    assert_eq!(place.env.json(&["run", "up.say"]).0, 3);
    let ran = place.env.run(&["mcp", "review", "up", "--approve", "say"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let (code, out) = place.env.json(&["run", "up.say", "--lock", "strict"]);
    assert_eq!((code, &out["error"]["kind"]), (3, &json!("lockfile_mismatch")), "{out:#}");
    assert_eq!(place.env.json(&["run", "up.say", "--lock", "off"]).0, 0);
}

#[test]
fn rules_and_permissions_hold_for_upstream_tools() {
    let place = Place::new(&[tool("say", "Says it"), tool("read", "Reads it")]);
    place.env.write_user(
        "config/kiwi.toml",
        "[profiles.few.permissions]\ntools = [\"**\"]\nmcp_actions = { up = [\"read\"] }\n",
    );
    let (code, out) = place.env.json(&["run", "up.say", "--profile", "few"]);
    assert_eq!((code, &out["error"]["kind"]), (3, &json!("denied")), "{out:#}");
    let rule = "rule no_reading {\n  guards {\n    $tool == \"up.read\" -> reject \"not today\"\n  }\n  effects { }\n}\n";
    place.env.write("rules/no.kappa", rule);
    let (code, out) = place.env.json(&["run", "up.read", "--profile", "few"]);
    assert_eq!((code, &out["error"]["kind"]), (3, &json!("denied")), "{out:#}");
    assert!(out["error"]["message"].as_str().unwrap().contains("not today"), "{out:#}");
    assert_eq!(place.calls(), 0);
}

#[test]
fn a_server_that_only_the_project_names_is_not_started_before_the_project_is_trusted() {
    let place = Place::new(&[tool("say", "Says it")]);
    std::fs::remove_file(place.env.home().join(".ai/config/mcp_registry.yaml")).unwrap();
    place.env.write("config/mcp_registry.yaml", place.entry(""));
    let (code, out) = place.env.json(&["run", "up.say"]);
    assert_eq!((code, &out["error"]["kind"]), (3, &json!("denied")), "{out:#}");
    assert_eq!(out["error"]["details"]["reason"]["policy_id"], "trust");
    assert_eq!(place.log(), [] as [&str; 0]);
    // Trusting starts nothing by itself.
    assert_eq!(place.env.run(&["trust", "add"]).code, 0);
    assert_eq!(place.log(), [] as [&str; 0]);
    assert_eq!(place.env.json(&["run", "up.say"]).0, 0);
    // What was trusted is the file as it was.
    place.env.write("config/mcp_registry.yaml", place.entry(", description: other"));
    let (code, out) = place.env.json(&["run", "up.say"]);
    assert_eq!((code, &out["error"]["kind"]), (3, &json!("denied")), "{out:#}");
    assert_eq!(place.calls(), 1);
}

#[test]
fn a_manifest_may_stand_for_a_servers_tool() {
    let place = Place::new(&[tool("say", "Says it")]);
    let manifest = "tool_id: speak\nversion: \"1.0.0\"\ntool_type: mcp\nconfig: {server: up, tool: say}\nparameters: {type: object, properties: {text: {type: string}}}\n";
    place.env.write("tools/speak.yaml", manifest);
    let (code, out) = place.env.json(&["run", "speak", "text=hi"]);
    assert_eq!((code, &out["result"]), (0, &json!("say: {\"text\": \"hi\"}")), "{out:#}");
    place.offer(&[tool("say", "Says it otherwise")]);
    let (code, out) = place.env.json(&["run", "speak", "text=hi"]);
    assert_eq!((code, &out["error"]["kind"]), (3, &json!("integrity_mismatch")), "{out:#}");
    place.env.write(
        "tools/speak.yaml",
        manifest.replace("tool_type: mcp\n", "tool_type: mcp\nexecutor: mcp_http_runtime\n"),
    );
    let (code, out) = place.env.json(&["run", "speak", "text=hi"]);
    assert_eq!((code, &out["error"]["kind"]), (3, &json!("chain_invalid")), "{out:#}");
    assert_eq!(place.calls(), 1);
}

#[test]
fn what_is_no_tool_is_asked_for_by_a_tool_of_the_system() {
    let place = Place::new(&[]);
    let (code, out) = place.env.json(&["run", "mcp.up.read_resource", "uri=test://x"]);
    assert_eq!((code, &out["content"]["contents"][0]["text"]), (0, &json!("what it says")), "{out:#}");
    let chain: Vec<&str> =
        out["chain"].as_array().unwrap().iter().map(|link| link["tool_id"].as_str().unwrap()).collect();
    assert_eq!(chain, ["mcp.up.read_resource", "mcp_stdio_runtime", "subprocess"]);
    assert!(place.log().contains(&"read test://x".to_owned()));
    assert_eq!(place.env.json(&["run", "mcp.up.other"]).0, 2);
}

#[test]
fn a_secret_of_the_store_reaches_the_server_that_names_it() {
    let place = Place::new(&[tool("token", "Tells its token")]);
    place.env.write_user("config/mcp_registry.yaml", place.entry(", env: {TOKEN: \"${UP_TOKEN}\"}"));
    let (code, out) = place.env.json(&["run", "up.token"]);
    assert_eq!((code, &out["error"]["kind"]), (1, &json!("upstream_unavailable")), "{out:#}");
    assert!(out["error"]["message"].as_str().unwrap().contains("UP_TOKEN"), "{out:#}");
    assert_eq!(place.env.run_with_input(&["auth", "set", "UP_TOKEN"], "s3cret-of-the-store\n").code, 0);
    let (code, out) = place.env.json(&["run", "up.token"]);
    assert_eq!(code, 0, "{out:#}");
    assert_ne!(out["result"], "none");
}

#[test]
fn nothing_is_said_in_favour_of_a_tool_that_nobody_said() {
    let annotated = |name: &str, annotations: Value| {
        let mut tool = tool(name, "Does it");
        tool["annotations"] = annotations;
        tool
    };
    let place = Place::new(&[
        tool("plain", "Does it"),
        annotated("idle", json!({"title": "Idle"})),
        annotated("reads", json!({"readOnlyHint": true})),
        annotated("harms", json!({"readOnlyHint": true, "destructiveHint": true})),
    ]);
    let script = |more: &str| format!("# kiwi: version: \"1.0.0\"\n{more}echo hello\n");
    place.env.write("tools/silent.sh", script(""));
    place.env.write("tools/harmless.sh", script("# kiwi: mutates_state: false\n"));
    place.env.write("tools/harmful.sh", script("# kiwi: mutates_state: true\n"));
    trusted(&place.env);
    assert_eq!(place.env.run(&["mcp", "refresh", "up"]).code, 0);
    let mut pipe = Pipe::modern(&place.env, &["--direct"], json!({}));
    let listed = pipe.request("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    for (name, expected) in [
        ("up.plain", Value::Null),
        ("up.idle", Value::Null),
        ("up.reads", json!({"readOnlyHint": true})),
        ("up.harms", json!({"readOnlyHint": false, "destructiveHint": true})),
        ("silent", Value::Null),
        ("harmless", json!({"readOnlyHint": true, "destructiveHint": false})),
        ("harmful", json!({"readOnlyHint": false, "destructiveHint": true})),
        ("filesystem.list", json!({"readOnlyHint": true, "destructiveHint": false})),
    ] {
        let tool =
            tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("{name}: {listed}"));
        assert_eq!(tool["annotations"], expected, "{name}");
    }
    assert_eq!(pipe.leave(), Some(0));
}

#[test]
fn who_starts_too_slowly_is_given_more_time_to_start() {
    let env = TestEnvironment::new();
    env.write_user(
        "config/mcp_registry.yaml",
        "mcps:\n  slow: {command: sleep, args: [\"600\"], start_timeout: 1, timeout: 9}\n",
    );
    let (code, out) = env.json(&["mcp", "refresh", "slow"]);
    assert_ne!(code, 0, "{out:#}");
    let shown = out.to_string();
    assert!(shown.contains("was not ready within 1 s of its start"), "{out:#}");
    assert!(shown.contains("`start_timeout` in mcp_registry.yaml"), "{out:#}");
}
