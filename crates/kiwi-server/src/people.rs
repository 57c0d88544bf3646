//! A person's answer to a call, asked for through the client that made it.

use jiff::Timestamp;
use kiwi_gate::{Answer, Kernel, OnPending, Pending};
use kiwi_mcp::{Asked, Capability};
use kiwi_model::Fault;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};

use crate::voice::Voice;

/// A question that was put off: the call ends, and the question stays for `kiwi approve`.
pub(crate) type PutOff = Arc<Mutex<Option<Pending>>>;

/// Asks through the voice of the call, and hands the answer to the queue that the call waits on.
pub(crate) fn asker(
    kernel: &Arc<Kernel>,
    voice: &Arc<Voice>,
    by: &str,
    put_off: &PutOff,
    cancel: &kiwi_gate::Cancel,
) -> OnPending {
    let (kernel, voice, by) = (Arc::clone(kernel), Arc::clone(voice), by.to_owned());
    let (put_off, cancel) = (Arc::clone(put_off), cancel.clone());
    Arc::new(move |pending: &Pending| {
        let (kernel, voice, by, pending) =
            (Arc::clone(&kernel), Arc::clone(&voice), by.clone(), pending.clone());
        let (put_off, cancel) = (Arc::clone(&put_off), cancel.clone());
        tokio::spawn(async move {
            let asked = Asked {
                name: None,
                capability: Capability::Elicitation,
                params: question(&kernel, &pending.id),
            };
            let answers = voice.ask_named(vec![(format!("approval_{}", pending.id), asked)]).await;
            let answer = answers.into_iter().next().and_then(Result::ok).unwrap_or(Value::Null);
            let settled = match verdict(&answer) {
                Some((true, reason)) => settle(&kernel, |approvals, now| {
                    approvals.approve(&pending.id, said(&by, reason), now).map(drop)
                }),
                Some((false, reason)) => settle(&kernel, |approvals, now| {
                    approvals.reject(&pending.id, said(&by, reason), now).map(drop)
                }),
                None => Err(Fault::new(kiwi_model::ErrorKind::ApprovalRequired, "nobody answered")),
            };
            // Without an answer here the question stays where it is, and the call comes back to its caller.
            if settled.is_err() {
                *put_off.lock().unwrap_or_else(PoisonError::into_inner) = Some(pending);
                cancel.fire();
            }
        });
    })
}

fn settle(
    kernel: &Kernel,
    answer: impl FnOnce(&kiwi_gate::Approvals, Timestamp) -> Result<(), Fault>,
) -> Result<(), Fault> {
    answer(&kernel.approvals()?, Timestamp::now())
}

fn said(by: &str, reason: Option<String>) -> Answer {
    Answer { by: by.to_owned(), reason, option: None, remember: None }
}

/// What a person is shown: who wants to call what with what, and why that is a question.
fn question(kernel: &Kernel, id: &str) -> Value {
    let all = kernel.approvals().and_then(|approvals| approvals.all()).unwrap_or_default();
    let approval = all.into_iter().find(|entry| entry.id == id).and_then(|entry| entry.item.ok());
    let message = match approval {
        None => format!("A call waits for approval: {id}"),
        Some(approval) => {
            let tool = approval.tool.map(|tool| tool.to_string()).unwrap_or_default();
            let why: Vec<&str> = approval.questions.iter().map(|it| it.question.as_str()).collect();
            let params = serde_json::to_string(&approval.params).unwrap_or_default();
            let caller = approval.caller;
            format!("`{caller}` wants to run `{tool}` with {params}\n{}", why.join("\n"))
        }
    };
    json!({
        "mode": "form",
        "message": message,
        "requestedSchema": {
            "type": "object",
            "properties": {
                "decision": {"type": "string", "title": "Decision", "enum": ["approve", "reject"]},
                "reason": {"type": "string", "title": "Reason"}
            },
            "required": ["decision"]
        }
    })
}

/// Yes or no, and why; `None` where the question was put off or answered with something else.
fn verdict(answer: &Value) -> Option<(bool, Option<String>)> {
    let content = answer.get("content");
    let text = |name: &str| content.and_then(|it| it.get(name)).and_then(Value::as_str);
    let reason = text("reason").filter(|reason| !reason.is_empty()).map(str::to_owned);
    match (answer.get("action").and_then(Value::as_str)?, text("decision")) {
        ("accept", Some("approve")) => Some((true, reason)),
        ("accept", Some("reject")) | ("decline", _) => Some((false, reason)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_yes_is_a_yes() {
        let approve = json!({"action": "accept", "content": {"decision": "approve", "reason": "fine"}});
        assert_eq!(verdict(&approve), Some((true, Some("fine".to_owned()))));
        let reject = json!({"action": "accept", "content": {"decision": "reject"}});
        assert_eq!(verdict(&reject), Some((false, None)));
        assert_eq!(verdict(&json!({"action": "decline"})), Some((false, None)));
        for nothing in [
            json!(null),
            json!({}),
            json!({"action": "cancel", "content": {"decision": "approve"}}),
            json!({"action": "accept"}),
            json!({"action": "accept", "content": {"decision": true}}),
            json!({"content": {"decision": "approve"}}),
        ] {
            assert_eq!(verdict(&nothing), None, "{nothing}");
        }
    }
}
