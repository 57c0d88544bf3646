//! Help signals: what an agent does when it does not know how to go on.
//!
//! Every signal is one durable line in `sessions/{session}.jsonl` beside the audit log. A session that is stuck for good,
//! and a question of an agent's own, wait in the same queue as calls that need an approval.

mod journal;
mod request;
mod sessions;
mod topics;

use jiff::Timestamp;
use kiwi_model::limit::ApprovalConfig;
use kiwi_model::{ErrorKind, Explain as _, Fault};
use kiwi_space::Spaces;
use serde_json::{Map, Value, json};

pub use journal::{Signal, StuckReview};
pub use request::{Attempts, HelpRequest};
pub use sessions::{CallLine, SessionDetail, SessionSummary};

use self::journal::Journal;
use crate::approvals::{ApprovalState, Approvals, Escalation, Verdict, fresh_id};
use crate::kernel::Kernel;
use crate::request::{Caller, Session};

/// Past this many attempts a person looks at it.
const PATIENCE: u64 = 3;

/// Answers help signals.
pub struct Help<'a> {
    spaces: &'a Spaces,
    journal: Journal,
    approvals: ApprovalConfig,
}

impl<'a> Help<'a> {
    /// Signals of the project's sessions, without a project the user's.
    pub fn new(spaces: &'a Spaces, approvals: ApprovalConfig) -> Result<Self, Fault> {
        let root = spaces.state_root().map_err(|error| error.fault())?;
        Ok(Self { spaces, journal: Journal::new(root.join("sessions")), approvals })
    }

    /// Answers a signal, once it is recorded.
    pub fn signal(
        &self,
        request: &HelpRequest,
        session: Session,
        caller: &Caller,
        now: Timestamp,
    ) -> Result<Value, Fault> {
        let session = session.to_string();
        let entry = |id: Option<String>, body: Value| Signal {
            at: now,
            session: session.clone(),
            caller: caller.as_str().to_owned(),
            signal: request.action().to_owned(),
            id,
            body,
        };
        match request {
            HelpRequest::Guidance { topic } => {
                let answer = topics::guidance(self.spaces, topic.as_deref());
                self.journal.append(&entry(None, json!({"topic": topic, "known": answer.is_ok()})))?;
                answer
            }
            HelpRequest::Stuck { session_id, reason, attempts, context } => {
                let about = session_id.clone().unwrap_or_else(|| session.clone());
                // Whoever says every time that it is the first attempt is believed less every time.
                let before = self.journal.read(&session)?.0;
                let told = before.iter().filter(|it| it.signal == "stuck" && it.about() == about).count();
                let told = u64::try_from(told).unwrap_or(u64::MAX).saturating_add(1);
                let is_queued = attempts.count().max(told) > PATIENCE;
                let id = fresh_id();
                let advice = before.iter().rev().find(|it| it.signal == "answer").map(|it| it.body.clone());
                let body = json!({
                    "session_id": about, "reason": reason, "attempts": attempts, "context": context,
                    "queued": is_queued,
                });
                self.journal.append(&entry(Some(id.clone()), body))?;
                let action = if is_queued { "awaiting_intervention" } else { "retry_suggested" };
                Ok(json!({
                    "status": "stuck_acknowledged", "action": action, "session_id": about, "id": id,
                    "advice": advice,
                    "suggestion": suggestion(is_queued),
                }))
            }
            HelpRequest::Escalate { question, options } => {
                let asked = Escalation {
                    project: self.spaces.project_root().map(|root| root.display().to_string()),
                    session: session.clone(),
                    caller: caller.as_str().to_owned(),
                    question: question.clone(),
                    options: options.clone(),
                };
                let approvals =
                    Approvals::open(self.spaces, self.approvals).map_err(|error| error.fault())?;
                let (approval, state) = approvals.escalate(&asked, now)?;
                let body = json!({"question": question, "options": options, "state": state});
                self.journal.append(&entry(Some(approval.id.clone()), body))?;
                let decided = approval.decided.filter(|_| state != ApprovalState::Pending);
                let status = if decided.is_some() { "answered" } else { "escalated" };
                Ok(json!({
                    "status": status,
                    "action": if decided.is_some() { "proceed" } else { "awaiting_intervention" },
                    "id": approval.id, "session_id": session, "state": state,
                    "expires_at": format!("{:.0}", approval.expires_at),
                    "answer": decided.map(|it| {
                        json!({"verdict": it.verdict, "option": it.option, "reason": it.reason, "by": it.by})
                    }),
                    "suggestion": "ask the same question again to learn the answer",
                }))
            }
            HelpRequest::Checkpoint { reason } => {
                let id = fresh_id();
                self.journal.append(&entry(Some(id.clone()), json!({"reason": reason})))?;
                Ok(json!({"status": "checkpoint_recorded", "checkpoint_id": id, "session_id": session,
                          "at": format!("{now:.6}")}))
            }
        }
    }

    /// Sessions that are stuck and wait for a person, oldest first.
    pub fn stuck(&self) -> Result<Vec<StuckReview>, Fault> {
        self.journal.stuck()
    }

    /// Files of sessions that cannot be read whole, and why.
    pub fn unreadable(&self) -> Result<Vec<(String, String)>, Fault> {
        self.journal.unreadable()
    }

    /// Answers a session that is stuck: go on, or leave it. `id` may be the beginning of a name.
    pub fn answer(
        &self,
        id: &str,
        verdict: Verdict,
        by: &str,
        reason: Option<&str>,
        now: Timestamp,
    ) -> Result<Signal, Fault> {
        let all = self.stuck()?;
        let mut found = all.iter().filter(|it| !id.is_empty() && it.id.starts_with(&id.to_ascii_lowercase()));
        let (review, is_one) = (found.next(), found.next().is_none());
        let Some(review) = review.filter(|_| is_one) else {
            let (kind, problem) = match review {
                None => (ErrorKind::NotFound, "nothing that waits is called"),
                Some(_) => (ErrorKind::Ambiguous, "more than one thing that waits is called"),
            };
            let fault = Fault::new(kind, format!("{problem} `{id}`"));
            return Err(fault.with_hint("`kiwi reviews --all` lists them"));
        };
        let mut body = Map::new();
        body.insert("verdict".into(), json!(verdict));
        body.insert("by".into(), by.into());
        body.insert("reason".into(), json!(reason));
        let answer = Signal {
            at: now,
            session: review.session.clone(),
            caller: by.to_owned(),
            signal: "answer".to_owned(),
            id: Some(review.id.clone()),
            body: body.into(),
        };
        self.journal.append(&answer)?;
        Ok(answer)
    }
}

fn suggestion(is_queued: bool) -> &'static str {
    if is_queued {
        "a person will look at it; do something else, or end the session"
    } else {
        "try another way: help(action=\"guidance\", topic=\"stuck\") says how"
    }
}

impl Kernel {
    /// Help signals and the sessions they came from.
    pub fn help(&self) -> Result<Help<'_>, Fault> {
        Help::new(self.spaces(), ApprovalConfig::default())
    }
}

#[cfg(test)]
mod tests;
