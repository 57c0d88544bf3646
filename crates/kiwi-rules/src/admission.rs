//! The answer to one call, from all rules: the strictest wins, and every rule that spoke is heard.

use kiwi_model::Digest;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

use crate::evaluate::Evaluator;
use crate::rule::Rule;
use crate::syntax::Action;
use crate::{AdmissionRequest, DenialReason, Mutation, RuleRegistry};

/// An answer, the strictest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// The call may happen.
    Allow,
    /// A person decides.
    Ask,
    /// The call may not happen.
    Deny,
}

impl Answer {
    /// The stable spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// A rule that wants a person to decide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Which rule.
    pub rule: String,
    /// What it tells the person.
    pub reason: String,
}

/// What all rules together say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Decision {
    /// At least one rule admits, and none asks or rejects.
    Admit {
        /// What the rules want changed once the call was admitted.
        effect_mutations: Vec<Mutation>,
    },
    /// At least one rule asks, and none rejects.
    Ask {
        /// Every rule that asks, in the order of evaluation.
        asked: Vec<Asked>,
        /// What the rules want changed once a person has agreed.
        effect_mutations: Vec<Mutation>,
    },
    /// The call may not happen.
    Deny {
        /// The first reason in the order of evaluation.
        reason: DenialReason,
        /// The others.
        further: Vec<DenialReason>,
    },
}

/// What one rule said. Rules without a matching guard say nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Which rule.
    pub rule: String,
    /// Which of its guards, from 1; `None` when the rule could not be judged.
    pub guard: Option<usize>,
    /// What it said.
    pub answer: RuleAnswer,
    /// The integer operations it took, effects included.
    pub operations: u64,
}

/// The answer of one rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the answers of the language")]
pub enum RuleAnswer {
    Admit,
    Ask(String),
    Deny(DenialReason),
}

/// The outcome of an admission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdmissionResult {
    /// The answer.
    pub decision: Decision,
    /// What each rule said, in the order of evaluation.
    pub verdicts: Vec<Verdict>,
    /// The version of the ruleset that decided.
    pub rule_version: Digest,
}

impl AdmissionResult {
    /// The answer in one word.
    pub fn answer(&self) -> Answer {
        match self.decision {
            Decision::Admit { .. } => Answer::Allow,
            Decision::Ask { .. } => Answer::Ask,
            Decision::Deny { .. } => Answer::Deny,
        }
    }

    /// The first reason of a denial.
    pub fn denial(&self) -> Option<&DenialReason> {
        match &self.decision {
            Decision::Deny { reason, .. } => Some(reason),
            Decision::Admit { .. } | Decision::Ask { .. } => None,
        }
    }
}

/// Whether a call may happen. Total, synchronous and pure: every request gets an answer, and the same one every time.
pub fn evaluate_admission(request: &AdmissionRequest<'_>, registry: &RuleRegistry) -> AdmissionResult {
    let actual = registry.version_hash();
    let refusal = match request.rule_version {
        // Digests are compared in constant time.
        Some(attested) if Digest::parse(attested).ok() != Some(actual) => {
            Some(DenialReason::RuleVersionMismatch {
                expected: attested.chars().take(80).collect(),
                actual: actual.to_string(),
            })
        }
        _ => registry.refusal().cloned(),
    };
    let (decision, verdicts) = match refusal {
        Some(reason) => (Decision::Deny { reason, further: Vec::new() }, Vec::new()),
        None => judge(request, registry.concerning(request.tool)),
    };
    AdmissionResult { decision, verdicts, rule_version: actual }
}

/// What some rules say, given in their order of evaluation.
pub(crate) fn judge<'a>(
    request: &'a AdmissionRequest<'a>,
    rules: impl Iterator<Item = &'a Rule>,
) -> (Decision, Vec<Verdict>) {
    let mut verdicts = Vec::new();
    let mut willing = Vec::new();
    for rule in rules {
        let mut evaluator = Evaluator::new(request);
        let (guard, answer) = match evaluator.guards(rule) {
            Ok(None) => continue,
            Ok(Some((guard, action))) => (Some(guard), answer(rule, action)),
            Err(trouble) => (None, RuleAnswer::Deny(trouble.denial(&rule.name))),
        };
        let operations = evaluator.operations();
        if !rule.effects.is_empty() && !matches!(answer, RuleAnswer::Deny(_)) {
            willing.push((verdicts.len(), rule, evaluator));
        }
        verdicts.push(Verdict { rule: rule.name.clone(), guard, answer, operations });
    }
    let denied = verdicts.iter().any(|verdict| matches!(verdict.answer, RuleAnswer::Deny(_)));
    let mut mutations = Vec::new();
    if !denied {
        let mut state = Cow::Borrowed(request.state);
        for (at, rule, mut evaluator) in willing {
            let found = evaluator.effects(rule, state.to_mut());
            let Some(verdict) = verdicts.get_mut(at) else { continue };
            verdict.operations = evaluator.operations();
            match found {
                Ok(mut found) => mutations.append(&mut found),
                Err(trouble) => verdict.answer = RuleAnswer::Deny(trouble.denial(&rule.name)),
            }
        }
    }
    (decide(request, &verdicts, mutations), verdicts)
}

fn answer(rule: &Rule, action: &Action) -> RuleAnswer {
    match action {
        Action::Admit => RuleAnswer::Admit,
        Action::Ask(reason) => RuleAnswer::Ask(reason.clone()),
        Action::Reject(reason) => RuleAnswer::Deny(DenialReason::RuleRejected {
            rule: rule.name.clone(),
            rule_reason: reason.clone(),
        }),
    }
}

fn decide(request: &AdmissionRequest<'_>, verdicts: &[Verdict], effect_mutations: Vec<Mutation>) -> Decision {
    let mut denials = verdicts.iter().filter_map(|verdict| match &verdict.answer {
        RuleAnswer::Deny(reason) => Some(reason.clone()),
        RuleAnswer::Admit | RuleAnswer::Ask(_) => None,
    });
    if let Some(reason) = denials.next() {
        return Decision::Deny { reason, further: denials.collect() };
    }
    if verdicts.is_empty() {
        let reason = DenialReason::NoRuleMatched { tool: request.tool.to_owned() };
        return Decision::Deny { reason, further: Vec::new() };
    }
    let asked: Vec<Asked> = verdicts
        .iter()
        .filter_map(|verdict| match &verdict.answer {
            RuleAnswer::Ask(reason) => Some(Asked { rule: verdict.rule.clone(), reason: reason.clone() }),
            RuleAnswer::Admit | RuleAnswer::Deny(_) => None,
        })
        .collect();
    if asked.is_empty() {
        Decision::Admit { effect_mutations }
    } else {
        Decision::Ask { asked, effect_mutations }
    }
}
