//! Servers of the revision 2026-07-28: who asks is said with every request, and questions come as results.

use crate::support::{Bench, Witness, block_on, call, call_as, script, unavailable, wait_until};
use kiwi_mcp::{Capability, McpError};
use serde_json::{Value, json};
use std::sync::Arc;

#[test]
fn questions_come_together_and_are_answered_together() {
    let bench = Bench::new();
    block_on(async {
        let connection = bench.pool.connect(&script("new", "new.py", &[])).await.unwrap();
        assert_eq!(connection.protocol_version(), "2026-07-28");
        let listing = connection.list().await.unwrap();
        assert_eq!((listing.tools.len(), &listing.server_info["name"]), (5, &json!("new")));
        let person = Witness::answering(Capability::Elicitation, json!({"action": "accept", "content": {}}));
        let answer = call_as(&connection, "ask", json!({"x": 1}), person.clone()).await.unwrap();
        let seen: Value = serde_json::from_str(&answer.text()).unwrap();
        assert_eq!(seen["state"], "kept-7", "what the server wanted back comes back");
        assert_eq!(seen["arguments"], json!({"x": 1}));
        assert_eq!(seen["answers"]["a"], seen["answers"]["b"]);
        assert_eq!(seen["answers"]["a"], json!({"action": "accept", "content": {}}));
        assert_eq!(person.asked.lock().unwrap().len(), 2);
        assert_eq!(call(&connection, "state", json!({})).await.unwrap().text(), "after 3");
        // Nobody who could answer, and a server that never has enough.
        let refused = call(&connection, "ask", json!({})).await.unwrap_err();
        let McpError::Protocol { code, message, .. } = refused else { panic!("{refused:?}") };
        assert_eq!(code, -32601);
        assert!(message.starts_with("it needs an answer that was not given"), "{message}");
        let (problem, _) = unavailable(call(&connection, "endless", json!({})).await.unwrap_err());
        assert_eq!(problem, "asks for more and more");
        bench.pool.close().await;
    });
}

#[test]
fn each_request_offers_what_its_caller_can_answer() {
    let bench = Bench::new();
    block_on(async {
        let connection = bench.pool.connect(&script("new", "new.py", &[])).await.unwrap();
        let person: Arc<Witness> = Witness::answering(Capability::Elicitation, json!({}));
        let params = json!({"name": "seen", "arguments": {}, "_meta": {
            "traceparent": "00-1", "progressToken": "theirs", "io.modelcontextprotocol/clientInfo": {"name": "other"},
        }});
        for relay in [person.clone(), Arc::new(Witness::default())] {
            connection.request("tools/call", params.clone(), relay, std::future::pending()).await.unwrap();
        }
        let seen = call(&connection, "seen", json!({})).await.unwrap().text();
        let seen: Vec<Value> = serde_json::from_str(&seen).unwrap();
        let calls: Vec<&Value> =
            seen.iter().filter(|seen| seen["method"] == "tools/call").map(|seen| &seen["meta"]).collect();
        let offered = |meta: &Value| meta["io.modelcontextprotocol/clientCapabilities"].clone();
        assert_eq!(offered(calls[0]), json!({"elicitation": {"form": {}, "url": {}}}));
        assert_eq!(offered(calls[1]), json!({}));
        assert_eq!(calls[0]["traceparent"], "00-1", "what the caller says beside that goes along");
        assert_eq!(calls[0]["io.modelcontextprotocol/clientInfo"]["name"], "kiwi", "who asks is ours to say");
        assert_ne!(calls[0]["progressToken"], "theirs");
        bench.pool.close().await;
    });
}

#[test]
fn a_server_of_the_new_revision_tells_of_changes_when_it_is_asked_to() {
    let bench = Bench::new();
    block_on(async {
        let connection = bench.pool.connect(&script("new", "new.py", &[])).await.unwrap();
        let begun = std::time::Instant::now();
        while !call(&connection, "seen", json!({})).await.unwrap().text().contains("subscriptions/listen") {
            assert!(begun.elapsed().as_secs() < 5, "nobody listens");
        }
        call(&connection, "change", json!({})).await.unwrap();
        wait_until("the change is told", || bench.changes() == 1).await;
        bench.pool.close().await;
    });
}
