//! A service may answer "ask over there". Over there must be allowed too.

use serde_json::json;

use crate::support::TestEnvironment;
use crate::support::server::Server;
use crate::{agent, granted, policy, refused, run, trusted};

/// One that sends everybody on, and the one they are sent to.
fn two() -> (Server, Server) {
    let second = Server::start(|_| ("200 OK", json!("arrived").to_string()));
    let on: &str = format!("302 Found\r\nlocation: {}", second.url("/there")).leak();
    (Server::start(move |_| (on, "{}".into())), second)
}

fn tool(env: &TestEnvironment, first: &Server, more: &str) {
    env.write(
        "tools/ask.yaml",
        format!(
            "tool_id: ask\nversion: \"1.0.0\"\ntool_type: api\nconfig:\n  url: \"{}\"\n{more}",
            first.url("/here")
        ),
    );
}

fn hosts(servers: &[&Server]) -> String {
    let hosts = servers.iter().map(|server| format!("\"127.0.0.1:{}\"", server.port));
    format!("[{}]", hosts.collect::<Vec<_>>().join(", "))
}

#[test]
fn a_person_with_a_list_is_not_led_beyond_it() {
    let env = TestEnvironment::new();
    let (first, second) = two();
    tool(&env, &first, "  allow_hosts: [\"127.0.0.1\"]\n");
    let only = format!("tools: [ask]\nnetwork_hosts: {}\n", hosts(&[&first]));
    let why = refused(run(&env, &only, &["ask"]));
    assert!(why.contains(&format!("connecting to `127.0.0.1:{}`", second.port)), "{why}");
    let but = format!("tools: [ask]\nnetwork_hosts: [\"*\"]\ndeny: [\"127.0.0.1:{}\"]\n", second.port);
    refused(run(&env, &but, &["ask"]));
    assert_eq!((first.asked().len(), second.asked().len()), (2, 0));
    let both = format!("tools: [ask]\nnetwork_hosts: {}\n", hosts(&[&first, &second]));
    assert_eq!(granted(run(&env, &both, &["ask"])), "arrived");
    // And without a list wherever the tool may go.
    assert_eq!(granted(env.json(&["run", "ask"])), "arrived");
}

#[test]
fn an_agent_is_not_led_beyond_its_profile_whatever_the_tool_lists() {
    let env = trusted();
    let (first, second) = two();
    let profile = |servers: &[&Server]| {
        let text =
            format!("[profiles.mcp.permissions]\ntools = [\"**\"]\nnetwork_hosts = {}\n", hosts(servers));
        env.write_user("config/kiwi.toml", text);
    };
    profile(&[&first]);
    // A tool that lists nothing more is held by the walls, one that does by the profile.
    tool(&env, &first, "");
    let outcome = agent(&env, "ask", json!({}));
    assert_eq!(outcome.error.map(|fault| fault.kind.to_string()).as_deref(), Some("denied"));
    tool(&env, &first, &format!("  allow_hosts: {}\n", hosts(&[&second])));
    let (id, reason) = policy(&agent(&env, "ask", json!({})));
    assert_eq!(id, "permission");
    assert!(reason.contains(&format!("127.0.0.1:{}", second.port)), "{reason}");
    assert_eq!((first.asked().len(), second.asked().len()), (2, 0));
    profile(&[&first, &second]);
    assert_eq!(agent(&env, "ask", json!({})).result, "arrived");
    tool(&env, &first, "");
    assert!(agent(&env, "ask", json!({})).error.is_some(), "the walls still hold a tool that lists nothing");
    assert_eq!(second.asked().len(), 1);
}
