//! A denial, as the caller gets it.

use kiwi_model::{ErrorKind, Fault};
use kiwi_rules::{Answer, DenialReason};
use serde_json::{Value, json};
use std::sync::Arc;

use super::{Judge, Objection, Why};

/// The status that a denial has over HTTP.
const FORBIDDEN: u16 = 403;

/// Told of every denial, after it was recorded. What it does cannot undo the denial or its record.
pub type OnDeny = Arc<dyn Fn(&ToolAdmissionDenied) + Send + Sync>;

/// A call that may not happen.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolAdmissionDenied {
    /// The first reason of the strictest answer.
    pub reason: DenialReason,
    /// Who asked.
    pub caller: String,
    /// For what.
    pub tool: String,
    /// As a web server would say it.
    pub http_status: u16,
    /// Everything that was said against the call.
    pub objections: Vec<Objection>,
    /// Which of them decided.
    decisive: Objection,
}

impl ToolAdmissionDenied {
    /// The denial that these objections amount to; `None` where none of them denies.
    pub(crate) fn from_objections(objections: &[Objection], caller: &str, tool: &str) -> Option<Self> {
        let decisive = decisive(objections).filter(|objection| objection.answer() == Answer::Deny)?;
        let Why::Denied(reason) = &decisive.why else { return None };
        Some(Self {
            reason: reason.clone(),
            caller: caller.to_owned(),
            tool: tool.to_owned(),
            http_status: FORBIDDEN,
            objections: objections.to_vec(),
            decisive: decisive.clone(),
        })
    }

    /// As every face shows it.
    pub fn fault(&self) -> Fault {
        let mut fault = self.decisive.fault();
        if let Value::Object(details) = &mut fault.details {
            details.insert("caller".into(), self.caller.clone().into());
            details.insert("tool".into(), self.tool.clone().into());
            details.insert("http_status".into(), json!(self.http_status));
            details.insert("reasons".into(), self.objections.iter().map(Objection::to_value).collect());
        }
        fault
    }
}

/// A denial by a policy that no judge speaks for.
pub(crate) fn denied_by(policy_id: &str, message: impl Into<String>) -> Fault {
    let message = message.into();
    let reason = DenialReason::Policy { policy_id: policy_id.to_owned(), policy_reason: message.clone() };
    Fault::new(ErrorKind::Denied, message).with_details(json!({ "reason": reason }))
}

/// A failure, and where it is a denial that came from somewhere else than a judge, with what every denial says.
pub(crate) fn complete_denial(mut fault: Fault, caller: &str, tool: &str) -> Fault {
    if fault.kind != ErrorKind::Denied {
        return fault;
    }
    if !fault.details.is_object() {
        fault.details = json!({});
    }
    if let Value::Object(details) = &mut fault.details {
        let reason =
            || DenialReason::Policy { policy_id: "permission".into(), policy_reason: fault.message.clone() };
        details.entry("reason").or_insert_with(|| json!(reason()));
        details.entry("caller").or_insert_with(|| caller.into());
        details.entry("tool").or_insert_with(|| tool.into());
        details.entry("http_status").or_insert_with(|| FORBIDDEN.into());
    }
    fault
}

/// The objection that speaks for all: the first of the strictest. Two say less than the others and speak only where
/// nothing else does: that no rule admits a call, and that somebody wants it asked, once it was asked.
pub(crate) fn decisive(objections: &[Objection]) -> Option<&Objection> {
    let strictest = objections.iter().map(Objection::answer).max()?;
    let mut candidates = objections.iter().filter(|objection| objection.answer() == strictest);
    let says_more = |objection: &&Objection| match &objection.why {
        Why::Denied(reason) => !matches!(reason, DenialReason::NoRuleMatched { .. }),
        Why::Asked { .. } => objection.judge == Judge::Approval,
    };
    candidates.clone().find(says_more).or_else(|| candidates.next())
}
