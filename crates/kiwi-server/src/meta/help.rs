//! `help`: signals of an agent that does not know how to go on.

use jiff::Timestamp;
use kiwi_gate::HelpRequest;
use kiwi_model::Fault;
use rmcp::model::CallToolResult;
use serde_json::{Map, Value};

use crate::answer::told;
use crate::client::Client;
use crate::server::Server;

/// Answers a signal.
pub(super) fn help(
    server: &Server,
    client: &Client,
    arguments: Map<String, Value>,
) -> Result<CallToolResult, Fault> {
    let request = HelpRequest::parse(&meant(arguments))?;
    let answer = server.kernel.help()?.signal(&request, client.session, &client.caller, Timestamp::now())?;
    let text = ["content", "text", "suggestion", "status"].iter().find_map(|name| answer.get(name)?.as_str());
    let text = text.map_or_else(|| answer.to_string(), str::to_owned);
    Ok(told(answer, text))
}

/// What is left out is guidance, and an agent may put a person's question into `reason` or `context`.
fn meant(mut arguments: Map<String, Value>) -> Value {
    arguments.retain(|_, value| !value.is_null());
    let action = arguments.entry("action").or_insert_with(|| "guidance".into()).clone();
    if action == "escalate" {
        let reason = arguments.remove("reason");
        let context = arguments.remove("context");
        if let Some(Value::Object(context)) = context {
            for name in ["question", "options"] {
                if let Some(value) = context.get(name) {
                    arguments.entry(name).or_insert_with(|| value.clone());
                }
            }
        }
        if let Some(reason) = reason {
            arguments.entry("question").or_insert(reason);
        }
    }
    // The schema is one for all actions; what another one takes is no mistake.
    let known: &[&str] = match action.as_str() {
        Some("guidance") => &["action", "topic"],
        Some("stuck") => &["action", "session_id", "reason", "attempts", "context"],
        Some("escalate") => &["action", "question", "options"],
        Some("checkpoint") => &["action", "reason"],
        _ => return Value::Object(arguments),
    };
    let shared = ["topic", "reason", "attempts", "context"];
    arguments.retain(|name, _| known.contains(&name.as_str()) || !shared.contains(&name.as_str()));
    Value::Object(arguments)
}
