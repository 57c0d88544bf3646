//! What a person is asked, and what they answered.

use jiff::{SignedDuration, Timestamp};
use kiwi_model::{CanonicalError, Digest, Integrity, ToolId, Version, canonical};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A call that somebody has to say yes to: exactly this one.
#[derive(Debug, Clone)]
pub struct Bound {
    /// The project it is made in.
    pub project: Option<String>,
    /// The session it is made in.
    pub session: String,
    /// Who makes it.
    pub caller: String,
    /// Which tool.
    pub tool: ToolId,
    /// Which version.
    pub version: Version,
    /// Its identity.
    pub integrity: Integrity,
    /// The hash over its chain.
    pub chain_hash: Digest,
    /// With what it would run. Only hashes of it are kept.
    pub params: Map<String, Value>,
    /// The same as a person may see it, secrets taken out.
    pub shown: Value,
    /// The rules that were in force.
    pub rules_version: Digest,
}

/// Something a rule or a profile wants to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Who asks.
    pub by: String,
    /// What.
    pub question: String,
}

/// What is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalKind {
    /// A call.
    Call,
    /// A question of an agent's own.
    Escalation,
}

/// How far a request has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// Nobody has answered.
    Pending,
    /// Yes, once.
    Approved,
    /// No.
    Rejected,
    /// Yes, and it was made use of.
    Used,
    /// Nobody answered in time, or nobody made use of the answer.
    Expired,
}

impl ApprovalState {
    /// The stable spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Used => "used",
            Self::Expired => "expired",
        }
    }
}

/// Yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Yes.
    Approved,
    /// No.
    Rejected,
}

impl Verdict {
    /// The stable spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Rejected => "rejected",
        }
    }
}

/// An answer, signed by the user's approval key together with what was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decided {
    /// Yes or no.
    pub verdict: Verdict,
    /// Who answered.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// Until when the answer holds.
    pub until: Timestamp,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Which of the options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
    /// The grant that remembers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remember: Option<String>,
    /// The signature, hexadecimal.
    pub signature: String,
}

/// A request for a person, as its file holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// Its name.
    pub id: String,
    /// What is asked about.
    pub kind: ApprovalKind,
    /// When it was asked.
    pub created_at: Timestamp,
    /// Until when it can be answered.
    pub expires_at: Timestamp,
    /// The project.
    pub project: Option<String>,
    /// The session that asked first.
    pub session: String,
    /// Who asked.
    pub caller: String,
    /// The tool of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolId>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// Its identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integrity: Option<Integrity>,
    /// The hash over its chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain_hash: Option<Digest>,
    /// The hash of the canonical parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params_hash: Option<Digest>,
    /// The hash of each parameter, for grants that let one of them vary.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub param_hashes: BTreeMap<String, Digest>,
    /// The parameters as a person may see them.
    #[serde(default)]
    pub params: Value,
    /// The rules that were in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules_version: Option<Digest>,
    /// What is asked.
    pub questions: Vec<Question>,
    /// What can be answered, beside yes and no.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// How far it has come. What it says beyond `pending` counts only with a signature.
    pub state: ApprovalState,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<Decided>,
}

impl Bound {
    /// The hash of the parameters.
    pub(crate) fn params_hash(&self) -> Result<Digest, CanonicalError> {
        hash(&Value::Object(self.params.clone()))
    }

    /// The hash of each parameter.
    pub(crate) fn param_hashes(&self) -> Result<BTreeMap<String, Digest>, CanonicalError> {
        self.params.iter().map(|(name, value)| Ok((name.clone(), hash(value)?))).collect()
    }

    /// The caller whatever its session: what a grant is bound to.
    pub(crate) fn lasting_caller(&self) -> &str {
        lasting(&self.caller)
    }
}

impl Approval {
    /// A question about a call.
    pub(crate) fn of_call(
        id: String,
        bound: &Bound,
        questions: &[Question],
        now: Timestamp,
        timeout: SignedDuration,
    ) -> Result<Self, CanonicalError> {
        Ok(Self {
            id,
            kind: ApprovalKind::Call,
            created_at: now,
            expires_at: later(now, timeout),
            project: bound.project.clone(),
            session: bound.session.clone(),
            caller: bound.caller.clone(),
            tool: Some(bound.tool.clone()),
            version: Some(bound.version.clone()),
            integrity: Some(bound.integrity),
            chain_hash: Some(bound.chain_hash),
            params_hash: Some(bound.params_hash()?),
            param_hashes: bound.param_hashes()?,
            params: bound.shown.clone(),
            rules_version: Some(bound.rules_version),
            questions: questions.to_vec(),
            options: Vec::new(),
            state: ApprovalState::Pending,
            decided: None,
        })
    }

    /// Whether it is about exactly this call.
    pub(crate) fn is_about(&self, bound: &Bound) -> Result<bool, CanonicalError> {
        Ok(self.kind == ApprovalKind::Call
            && self.project == bound.project
            && self.caller == bound.caller
            && self.tool.as_ref() == Some(&bound.tool)
            && self.integrity == Some(bound.integrity)
            && self.chain_hash == Some(bound.chain_hash)
            && self.rules_version == Some(bound.rules_version)
            && self.params_hash == Some(bound.params_hash()?))
    }

    /// How long it waits for an answer, and an answer for its use.
    pub(crate) fn patience(&self) -> SignedDuration {
        self.expires_at.duration_since(self.created_at)
    }

    /// What is signed: everything but how far it has come since.
    pub(crate) fn signed_text(&self) -> Result<String, CanonicalError> {
        let mut value = serde_json::to_value(self).unwrap_or(Value::Null);
        if let Value::Object(map) = &mut value {
            map.remove("state");
            if let Some(Value::Object(decided)) = map.get_mut("decided") {
                decided.remove("signature");
            }
        }
        canonical(&json!({"signed": "kiwi approval 1", "approval": value}))
    }
}

/// A caller without its session.
pub(crate) fn lasting(caller: &str) -> &str {
    caller.split_once('#').map_or(caller, |(caller, _)| caller)
}

pub(crate) fn hash(value: &Value) -> Result<Digest, CanonicalError> {
    canonical(value).map(|text| Digest::of(text.as_bytes()))
}

/// Some time later; the end of time is late enough.
pub(crate) fn later(now: Timestamp, by: SignedDuration) -> Timestamp {
    now.checked_add(by).unwrap_or(Timestamp::MAX)
}
