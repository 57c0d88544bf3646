//! Effects: what a rule wants changed, held against axioms and invariants before anybody changes anything.

use serde_json::{Map, Value as Json};

use super::{Evaluator, Trouble, integer, text};
use crate::rule::{Effect, Rule, Target};
use crate::value::Value;
use crate::{AxiomId, Mutation, Scalar};

impl<'a> Evaluator<'a> {
    /// The mutations of a rule. `state` is carried along, so that ten small steps are judged like one large one.
    pub fn effects(
        &mut self,
        rule: &'a Rule,
        state: &mut Map<String, Json>,
    ) -> Result<Vec<Mutation>, Trouble> {
        let mut mutations = Vec::with_capacity(rule.effects.len());
        for effect in &rule.effects {
            let mutation = self.effect(&rule.name, effect)?;
            mutation.apply_to(state).map_err(|broken| Trouble::Invariant {
                effect: describe(effect.as_str(), subject(&mutation)),
                detail: broken.0,
            })?;
            mutations.push(mutation);
        }
        Ok(mutations)
    }

    fn effect(&mut self, rule: &str, effect: &'a Effect) -> Result<Mutation, Trouble> {
        let rule = rule.to_owned();
        let mutation = match effect {
            Effect::Set { target, value } => {
                let path = self.target(target, "`set`")?;
                let value = Scalar::from(self.value(value)?);
                self.spend(1)?;
                Mutation::Set { rule, path, value }
            }
            Effect::Apply { target, delta } => {
                let path = counter(self.target(target, "`apply`")?);
                let delta = self.value(delta)?;
                self.spend(1)?;
                Mutation::Apply { rule, path, delta: integer(delta, "`apply`")? }
            }
            Effect::Emit { name, values } => {
                let name = self.value(name)?;
                let name = text(name, "`emit`")?.to_owned();
                let mut carried = Vec::with_capacity(values.len());
                for value in values {
                    let value = self.value(value)?;
                    // Canonical JSON has no −2^63, so no record could hold the event.
                    if value == Value::Integer(i64::MIN) {
                        return Err(Trouble::Overflow);
                    }
                    carried.push(Scalar::from(value));
                }
                self.spend(1)?;
                Mutation::Emit { rule, name, values: carried }
            }
        };
        match axiom(&mutation) {
            None => Ok(mutation),
            Some(axiom) => {
                let what = describe(effect.as_str(), subject(&mutation));
                let (Mutation::Set { rule, .. } | Mutation::Apply { rule, .. } | Mutation::Emit { rule, .. }) =
                    mutation;
                Err(Trouble::Axiom { axiom, detail: format!("rule `{rule}` wants to `{what}`") })
            }
        }
    }

    fn target(&mut self, target: &'a Target, taker: &'static str) -> Result<String, Trouble> {
        match target {
            Target::Path(path) => Ok(path.clone()),
            Target::Named(name) => {
                let name = self.value(name)?;
                Ok(text(name, taker)?.to_owned())
            }
        }
    }
}

/// A counter may be named alone: `apply("calls", 1)` is `apply("state.calls", 1)`. What an axiom protects keeps its name.
fn counter(name: String) -> String {
    if name.contains('.') || protector(&name).is_some() || name == "state" || name.is_empty() {
        name
    } else {
        format!("state.{name}")
    }
}

/// The axiom that keeps every effect away from what stands at this root.
fn protector(root: &str) -> Option<AxiomId> {
    match root {
        "audit" => Some(AxiomId::History),
        "permission" | "mode" => Some(AxiomId::Authority),
        _ => None,
    }
}

fn axiom(mutation: &Mutation) -> Option<AxiomId> {
    let subject = subject(mutation);
    let below = subject.strip_prefix("state.").unwrap_or(subject);
    let sets_reputation =
        matches!(mutation, Mutation::Set { .. }) && below.split('.').next() == Some("reputation");
    protector(subject.split('.').next().unwrap_or_default())
        .or_else(|| sets_reputation.then_some(AxiomId::Reputation))
}

fn subject(mutation: &Mutation) -> &str {
    match mutation {
        Mutation::Set { path, .. } | Mutation::Apply { path, .. } => path,
        Mutation::Emit { name, .. } => name,
    }
}

fn describe(effect: &str, subject: &str) -> String {
    format!("{effect} {subject}")
}
