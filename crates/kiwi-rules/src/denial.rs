//! Why a call may not happen: eight kinds, so that policy, scripts and agents can tell them apart.

use kiwi_model::{ErrorKind, Explain, canonical};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::BudgetAxis;

/// What no effect of any rule may touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AxiomId {
    /// History is append-only: no effect on `audit.*`.
    #[serde(rename = "AX-01")]
    History,
    /// Reputation is derived: it is applied to, never set.
    #[serde(rename = "AX-02")]
    Reputation,
    /// No absolute authority: no effect on `permission.*` or `mode`.
    #[serde(rename = "AX-03")]
    Authority,
}

impl AxiomId {
    /// The stable spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::History => "AX-01",
            Self::Reputation => "AX-02",
            Self::Authority => "AX-03",
        }
    }

    /// What the axiom says.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::History => "history is append-only",
            Self::Reputation => "reputation is derived, not set",
            Self::Authority => "no rule has absolute authority",
        }
    }
}

impl std::fmt::Display for AxiomId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a call is denied. The spelling of kinds and fields never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "the names are the contract and say what they mean")]
pub enum DenialReason {
    NoRuleMatched { tool: String },
    Budget { axis: BudgetAxis, limit: u64, used: u64, rule: String },
    EffectInvariantViolated { rule: String, effect: String, detail: String },
    AxiomViolation { axiom: AxiomId, detail: String },
    Policy { policy_id: String, policy_reason: String },
    RuleVersionMismatch { expected: String, actual: String },
    AmbiguousRuleset { rules: Vec<String> },
    RuleRejected { rule: String, rule_reason: String },
}

impl DenialReason {
    /// The stable spelling of the kind.
    pub const fn kind_str(&self) -> &'static str {
        match self {
            Self::NoRuleMatched { .. } => "no_rule_matched",
            Self::Budget { .. } => "budget",
            Self::EffectInvariantViolated { .. } => "effect_invariant_violated",
            Self::AxiomViolation { .. } => "axiom_violation",
            Self::Policy { .. } => "policy",
            Self::RuleVersionMismatch { .. } => "rule_version_mismatch",
            Self::AmbiguousRuleset { .. } => "ambiguous_ruleset",
            Self::RuleRejected { .. } => "rule_rejected",
        }
    }

    /// Canonical JSON. Total: a count that JSON cannot hold exactly is written as the largest it can.
    pub fn serialise(&self) -> String {
        let mut value = serde_json::to_value(self).unwrap_or(Value::Null);
        for key in ["limit", "used"] {
            match value.get_mut(key) {
                Some(count) if count.as_i64().is_none() => *count = i64::MAX.into(),
                _ => {}
            }
        }
        canonical(&value).unwrap_or_default()
    }

    /// Reads what [`DenialReason::serialise`] wrote.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The sentence an operator reads.
    pub fn render(&self) -> String {
        match self {
            Self::NoRuleMatched { tool } => format!("no rule admits `{tool}`"),
            Self::Budget { axis, limit, used, rule } => {
                format!("rule `{rule}` used {used} {}, and {limit} is the most", axis.words())
            }
            Self::EffectInvariantViolated { rule, effect, detail } => {
                format!("rule `{rule}` may not `{effect}`: {detail}")
            }
            Self::AxiomViolation { axiom, detail } => {
                format!("{axiom} ({}) forbids it: {detail}", axiom.meaning())
            }
            Self::Policy { policy_id, policy_reason } => format!("policy `{policy_id}`: {policy_reason}"),
            Self::RuleVersionMismatch { expected, actual } => {
                format!("the caller relies on ruleset `{expected}`, but `{actual}` is active")
            }
            Self::AmbiguousRuleset { rules } => {
                let names: Vec<String> = rules.iter().map(|rule| format!("`{rule}`")).collect();
                format!("rules {} answer the same conditions differently", names.join(" and "))
            }
            Self::RuleRejected { rule, rule_reason } => format!("rule `{rule}` rejects it: {rule_reason}"),
        }
    }
}

impl std::fmt::Display for DenialReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.render())
    }
}

impl std::error::Error for DenialReason {}

impl Explain for DenialReason {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Denied
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NoRuleMatched { .. } => "`kiwi rules explain` shows what each rule says to a call",
            Self::Budget { .. } => "split the rule, or take the expensive part out of it",
            Self::EffectInvariantViolated { .. } => {
                "effects write `state.*` only, and counters stay at zero or above"
            }
            Self::AxiomViolation { .. } => "take the effect out of the rule; no configuration lifts an axiom",
            Self::RuleVersionMismatch { .. } => "`kiwi rules hash` prints the version that is active",
            Self::AmbiguousRuleset { .. } => {
                "give one of the rules another condition, or both the same answer"
            }
            Self::Policy { .. } | Self::RuleRejected { .. } => return None,
        };
        Some(hint.into())
    }

    fn details(&self) -> Value {
        serde_json::json!({ "reason": serde_json::to_value(self).unwrap_or(Value::Null) })
    }
}
