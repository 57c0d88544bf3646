//! Looking at rules: those in force, and those that might be.

use kiwi_model::Fault;
use kiwi_model::record::{DecisionNote, Event, Record};
use kiwi_rules::{Answer, LoadError, RecordedRequest, RuleRegistry, evaluate_admission};
use kiwi_space::RuleText;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

use crate::admission::Judge;
use crate::kernel::Kernel;
use crate::rulebook::registry;

/// What can be done about rules beside being judged by them.
#[derive(Clone, Copy)]
pub struct Rules<'a> {
    kernel: &'a Kernel,
}

impl Kernel {
    /// The rules.
    pub fn rules(&self) -> Rules<'_> {
        Rules { kernel: self }
    }
}

impl Rules<'_> {
    /// The rules in force, or what is wrong with them.
    pub fn active(&self) -> Result<Arc<RuleRegistry>, Fault> {
        self.kernel.admission.rulebook.read().map_err(|unusable| unusable.fault)
    }

    /// The rules of some files, as if they were all there are.
    pub fn of(&self, texts: &[RuleText]) -> Result<RuleRegistry, LoadError> {
        registry(texts)
    }

    /// What other rules would have said to the calls on record, in the order in which they were made.
    pub fn replay(&self, rules: &RuleRegistry, since: Option<&str>) -> Result<Vec<Replayed>, Fault> {
        let lines = self.kernel.audit()?.between(since, None)?;
        Ok(lines.iter().filter_map(|line| replayed(&line.line.record, rules)).collect())
    }
}

/// A call on record, judged again.
#[derive(Debug, Clone, Serialize)]
pub struct Replayed {
    /// When it was made.
    pub at: String,
    /// In which session.
    pub session: String,
    /// By whom.
    pub caller: String,
    /// Of which tool.
    pub tool: String,
    /// What the gate said then, before a person was asked: no rules say what a person would have.
    pub before: Answer,
    /// What it would say by the other rules; `None` where that cannot be told.
    pub after: Option<Answer>,
    /// Why, in a sentence.
    pub why: Option<String>,
}

impl Replayed {
    /// Whether the answer would be another one.
    pub fn has_changed(&self) -> bool {
        self.after.is_some_and(|after| after != self.before)
    }
}

/// Judges a record again. Lines that hold no decision (exits, calls that could not be planned) are no calls.
fn replayed(record: &Record, rules: &RuleRegistry) -> Option<Replayed> {
    if record.event == Event::Exit {
        return None;
    }
    let decision = record.decision.as_ref()?;
    let before = unasked(decision)?;
    let (after, why) = match recorded(record) {
        Err(missing) => (None, Some(missing.to_owned())),
        // Also where what rules remember could not be used, which is no part of what they judged.
        Ok(_) if record.rules_version == Some(rules.version_hash()) => (Some(before), None),
        Ok(request) => {
            let result = evaluate_admission(&request.request(), rules);
            // What others than the rules said stands.
            let others = decision.reasons.iter().filter(|reason| !is_by(reason, Judge::Rules));
            let after = strictest(others).max(result.answer());
            (Some(after), result.denial().map(kiwi_rules::DenialReason::render))
        }
    };
    let Record { at, session, caller, tool, .. } = record.clone();
    Some(Replayed { at, session, caller, tool, before, after, why })
}

/// What was decided before a person was asked.
fn unasked(decision: &DecisionNote) -> Option<Answer> {
    if decision.reasons.iter().any(|reason| is_by(reason, Judge::Approval)) {
        return Some(strictest(&decision.reasons));
    }
    answer(&decision.answer)
}

/// What reasons amount to, but for those of a person.
fn strictest<'a>(reasons: impl IntoIterator<Item = &'a Value>) -> Answer {
    let reasons = reasons.into_iter().filter(|reason| !is_by(reason, Judge::Approval));
    reasons
        .map(|reason| if reason["kind"] == "asked" { Answer::Ask } else { Answer::Deny })
        .max()
        .unwrap_or(Answer::Allow)
}

fn is_by(reason: &Value, judge: Judge) -> bool {
    reason.get("judge").and_then(Value::as_str) == Some(judge.as_str())
}

/// What was judged, whole, or what of it is missing.
fn recorded(record: &Record) -> Result<RecordedRequest, &'static str> {
    let judged = record.decision.as_ref().and_then(|decision| decision.judged.clone());
    let Some(Value::Object(mut request)) = judged else { return Err("what was judged is not on record") };
    if !record.redacted.is_empty() {
        return Err("secrets were left out of its parameters");
    }
    let Some(args @ Value::Object(_)) = &record.params else {
        return Err("its parameters are not on record");
    };
    request.insert("args".into(), args.clone());
    request.insert("caller".into(), record.caller.clone().into());
    request.insert("tool".into(), record.tool.clone().into());
    serde_json::from_value(Value::Object(request)).map_err(|_| "what was judged is not on record")
}

fn answer(text: &str) -> Option<Answer> {
    [Answer::Allow, Answer::Ask, Answer::Deny].into_iter().find(|answer| answer.as_str() == text)
}
