//! What the judges said about a call.

use kiwi_model::Digest;
use kiwi_model::record::{DecisionNote, PermissionNote};
use kiwi_rules::{Answer, Mutation, Verdict};
use serde_json::Value;
use std::sync::Arc;

use super::denied::decisive;
use super::{Counted, Judge, Objection};
use crate::approvals::Approved;
use crate::permission::PermissionContext;

/// The answers of all judges.
#[derive(Debug)]
pub(crate) struct Judged {
    /// Everything that was said against the call, in the order of the judges.
    pub objections: Vec<Objection>,
    /// What the rules want changed once it is admitted.
    pub mutations: Vec<Mutation>,
    /// What each rule said.
    pub verdicts: Vec<Verdict>,
    /// The version of the rules.
    pub rules_version: Digest,
    /// What the caller's profile said.
    pub permission: PermissionNote,
    /// What the rules judged, beside the parameters.
    pub inputs: Value,
    /// What the caller may touch.
    pub context: Arc<PermissionContext>,
    /// What it has taken of what is counted.
    pub counted: Counted,
}

/// A call that was admitted.
#[derive(Debug)]
pub(crate) struct Admitted {
    /// For the record, which takes it.
    pub note: Option<AdmissionNote>,
    /// What the caller may touch.
    pub context: Arc<PermissionContext>,
}

/// What the record keeps of an admission.
#[derive(Debug)]
pub(crate) struct AdmissionNote {
    pub decision: DecisionNote,
    pub rules_version: Digest,
    pub permission: PermissionNote,
}

impl Judged {
    /// The strictest answer.
    pub fn answer(&self) -> Answer {
        self.objections.iter().map(Objection::answer).max().unwrap_or(Answer::Allow)
    }

    /// The objection that speaks for all.
    pub fn decisive(&self) -> Objection {
        decisive(&self.objections).cloned().unwrap_or_else(|| {
            Objection::policy(Judge::Rules, "ruleset", "the gate refused without a reason")
        })
    }

    /// As the record keeps it. What the rules judged goes into it: a call has one such note.
    pub fn note(&mut self, sequence: u64, approved: Option<Approved>) -> AdmissionNote {
        let events = self.mutations.iter().filter(|mutation| matches!(mutation, Mutation::Emit { .. }));
        AdmissionNote {
            decision: DecisionNote {
                sequence,
                answer: self.answer().to_string(),
                reasons: self.objections.iter().map(Objection::to_value).collect(),
                approved_by: approved.as_ref().map(|approved| approved.by.clone()),
                approval: approved.map(|approved| approved.grant.unwrap_or(approved.approval)),
                events: events.filter_map(|event| serde_json::to_value(event).ok()).collect(),
                judged: Some(self.inputs.take()),
            },
            rules_version: self.rules_version,
            permission: self.permission.clone(),
        }
    }
}
