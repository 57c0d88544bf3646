//! What a caller may touch, through the real gate: lists of permissions, shell commands, agents, and what plans need.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and drives the real program"
)]

#[path = "permissions/agent.rs"]
mod agent;
#[path = "permissions/lists.rs"]
mod lists;
#[path = "permissions/needs.rs"]
mod needs;
#[path = "permissions/redirects.rs"]
mod redirects;
#[path = "permissions/shell.rs"]
mod shell;
mod support;

use kiwi_gate::{Outcome, Request};
use kiwi_space::Transport;
use serde_json::{Value, json};
use support::kernel::{call, host, kernel, kernel_of, request};
use support::{TestEnvironment, write};

/// A file with a list of permissions, outside the project.
fn list(env: &TestEnvironment, text: &str) -> String {
    write(&env.tmp().join("permissions.yaml"), text).display().to_string()
}

/// Runs a tool with `--permissions`.
fn run(env: &TestEnvironment, permissions: &str, words: &[&str]) -> (i32, Value) {
    env.json(&[&["run"][..], words, &["--permissions", &list(env, permissions)]].concat())
}

/// Insists on a refusal by the permissions, and gives its sentence.
#[track_caller]
fn refused((code, outcome): (i32, Value)) -> String {
    let error = &outcome["error"];
    assert_eq!((code, error["kind"].as_str()), (3, Some("denied")), "{outcome:#}");
    let reason = &error["details"]["reason"];
    assert_eq!(
        (&reason["kind"], &reason["policy_id"]),
        (&json!("policy"), &json!("permission")),
        "{outcome:#}"
    );
    reason["policy_reason"].as_str().unwrap().to_owned()
}

#[track_caller]
fn granted((code, outcome): (i32, Value)) -> Value {
    assert_eq!(code, 0, "{outcome:#}");
    outcome["result"].clone()
}

/// A call as an agent makes it.
fn by_agent(tool: &str, params: Value) -> Request {
    Request { transport: Transport::Mcp, ..request(tool, params) }
}

/// A call by an agent through a server that has just been started.
fn agent(env: &TestEnvironment, tool: &str, params: Value) -> Outcome {
    call(&kernel(env), by_agent(tool, params))
}

/// The same on a machine with one more variable.
fn agent_with(env: &TestEnvironment, variable: (&str, &str), tool: &str, params: Value) -> Outcome {
    call(&kernel_of(host(env, &[variable]), env), by_agent(tool, params))
}

/// The policy that refused, and its sentence.
#[track_caller]
fn policy(outcome: &Outcome) -> (String, String) {
    let (kind, reason) = support::kernel::refusal(outcome);
    assert_eq!((kind.as_str(), &reason["kind"]), ("denied", &json!("policy")), "{outcome:?}");
    let text = |name: &str| reason[name].as_str().unwrap().to_owned();
    (text("policy_id"), text("policy_reason"))
}

/// A project that its user trusts.
fn trusted() -> TestEnvironment {
    let env = TestEnvironment::new();
    assert_eq!(env.run(&["trust", "add"]).code, 0);
    env
}

/// A one-file bash tool of the project.
fn bash(env: &TestEnvironment, name: &str, keys: &str, script: &str) {
    let head = format!("version: 1.0.0\n{keys}");
    let head: Vec<_> = head.lines().map(|line| format!("# kiwi: {line}")).collect();
    env.write(&format!("tools/{name}.sh"), format!("{}\n{script}\n", head.join("\n")));
}
