//! What can be said against a call.

use kiwi_model::{ErrorKind, Fault};
use kiwi_rules::{Answer, DenialReason};
use serde_json::{Map, Value, json};

/// Who judges, in the order in which they are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judge {
    /// The rules, and the version of them that the caller relies on.
    Rules,
    /// What the caller may touch.
    Permission,
    /// How often.
    RateLimit,
    /// Whether it goes round in circles.
    LoopBrake,
    /// How much in all.
    Budget,
    /// What a person said.
    Approval,
}

impl Judge {
    /// Every judge, in order.
    pub const ALL: [Self; 6] =
        [Self::Rules, Self::Permission, Self::RateLimit, Self::LoopBrake, Self::Budget, Self::Approval];

    /// The stable spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rules => "rules",
            Self::Permission => "permission",
            Self::RateLimit => "rate_limit",
            Self::LoopBrake => "loop_brake",
            Self::Budget => "budget",
            Self::Approval => "approval",
        }
    }
}

/// Why somebody objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// The call may not happen.
    Denied(DenialReason),
    /// A person has to decide.
    Asked {
        /// Which rule or profile wants that.
        by: String,
        /// What it tells the person.
        question: String,
    },
}

/// What a judge says against a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Objection {
    /// Who.
    pub judge: Judge,
    /// Why.
    pub why: Why,
    /// The kind of failure it ends the call with.
    pub kind: ErrorKind,
    /// What to do next.
    pub hint: Option<String>,
    /// Typed facts beside the reason.
    pub details: Map<String, Value>,
}

impl Objection {
    /// A denial with a typed reason.
    pub fn denied(judge: Judge, reason: DenialReason) -> Self {
        Self { judge, why: Why::Denied(reason), kind: ErrorKind::Denied, hint: None, details: Map::new() }
    }

    /// A denial by policy.
    pub fn policy(judge: Judge, policy_id: &str, policy_reason: impl Into<String>) -> Self {
        let reason =
            DenialReason::Policy { policy_id: policy_id.to_owned(), policy_reason: policy_reason.into() };
        Self::denied(judge, reason)
    }

    /// A question.
    pub fn asked(judge: Judge, by: impl Into<String>, question: impl Into<String>) -> Self {
        let why = Why::Asked { by: by.into(), question: question.into() };
        Self { judge, why, kind: ErrorKind::ApprovalRequired, hint: None, details: Map::new() }
    }

    /// The same with another kind of failure.
    #[must_use]
    pub fn of_kind(self, kind: ErrorKind) -> Self {
        Self { kind, ..self }
    }

    /// The same with what to do next.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The same with one more fact.
    #[must_use]
    pub fn with(mut self, name: &str, fact: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), fact.into());
        self
    }

    /// `ask` or `deny`.
    pub fn answer(&self) -> Answer {
        match self.why {
            Why::Denied(_) => Answer::Deny,
            Why::Asked { .. } => Answer::Ask,
        }
    }

    /// As records and `error.details` show it.
    pub fn to_value(&self) -> Value {
        let mut value = match &self.why {
            Why::Denied(reason) => serde_json::to_value(reason).unwrap_or(Value::Null),
            Why::Asked { by, question } => json!({"kind": "asked", "by": by, "question": question}),
        };
        if let Value::Object(map) = &mut value {
            map.insert("judge".into(), self.judge.as_str().into());
        }
        value
    }

    /// One sentence.
    pub fn sentence(&self) -> String {
        match &self.why {
            Why::Denied(reason) => reason.render(),
            Why::Asked { by, question } => format!("`{by}` asks: {question}"),
        }
    }

    /// The failure it ends the call with, where it is the strictest.
    pub fn fault(&self) -> Fault {
        let mut details = self.details.clone();
        if let Why::Denied(reason) = &self.why {
            details.insert("reason".into(), serde_json::to_value(reason).unwrap_or(Value::Null));
        }
        Fault { kind: self.kind, message: self.sentence(), hint: self.hint.clone(), details: details.into() }
    }
}
