//! Why a ruleset cannot be used, as facts.

use kiwi_model::{ErrorKind, Explain};
use serde_json::{Value, json};

use crate::{DenialReason, Problem};

/// Why a ruleset did not load. Whoever holds one of these denies every call: see [`crate::RuleRegistry::refusing`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the fields are named by what they hold")]
pub enum LoadError {
    #[error("{}", sentence(problems))]
    Invalid { problems: Vec<Problem> },
    #[error("{}", sentence(problems))]
    Ambiguous { rules: Vec<String>, problems: Vec<Problem> },
}

fn sentence(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl LoadError {
    /// What is wrong, and where.
    pub fn problems(&self) -> &[Problem] {
        match self {
            Self::Invalid { problems } | Self::Ambiguous { problems, .. } => problems,
        }
    }

    /// The denial that every call gets while the ruleset is like this.
    pub fn denial(&self) -> DenialReason {
        match self {
            Self::Invalid { problems } => DenialReason::Policy {
                policy_id: "ruleset".into(),
                policy_reason: problems.first().map(ToString::to_string).unwrap_or_default(),
            },
            Self::Ambiguous { rules, .. } => DenialReason::AmbiguousRuleset { rules: rules.clone() },
        }
    }
}

impl Explain for LoadError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid { .. } => ErrorKind::InvalidManifest,
            Self::Ambiguous { .. } => ErrorKind::Ambiguous,
        }
    }

    fn hint(&self) -> Option<String> {
        self.problems().first().and_then(|problem| problem.hint.clone())
    }

    fn details(&self) -> Value {
        match self {
            Self::Invalid { problems } => json!({ "problems": problems }),
            Self::Ambiguous { rules, problems } => json!({ "problems": problems, "rules": rules }),
        }
    }
}
