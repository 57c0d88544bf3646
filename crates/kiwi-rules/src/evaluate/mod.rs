//! One rule against one request. Whatever goes wrong is a denial with a reason; nothing panics, wraps or goes on.

mod effect;
mod expression;
mod function;

use crate::rule::{Rule, Variable};
use crate::syntax::Action;
use crate::value::{Unusable, Value};
use crate::{AdmissionRequest, AxiomId, BudgetAxis, BudgetTracker, DenialReason, Exceeded, Limits};

/// Strings are paid for in pieces of this many bytes, so that a long argument is not a way around the budget.
pub(crate) const PIECE: usize = 1024;

/// Why a rule could not be judged to its end.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Trouble {
    Overflow,
    DivisionByZero,
    NegativeRounds,
    Type { taker: &'static str, wanted: &'static str, found: &'static str },
    Unequal { operator: &'static str, left: &'static str, right: &'static str },
    Path { variable: String, why: Unusable },
    Budget(Exceeded),
    Invariant { effect: String, detail: String },
    Axiom { axiom: AxiomId, detail: String },
}

impl From<Exceeded> for Trouble {
    fn from(exceeded: Exceeded) -> Self {
        Self::Budget(exceeded)
    }
}

impl Trouble {
    fn unusable(variable: &Variable, why: Unusable) -> Self {
        Self::Path { variable: variable.to_string(), why }
    }

    /// The denial this is, for a rule.
    pub fn denial(self, rule: &str) -> DenialReason {
        let rule = rule.to_owned();
        let rule_reason = match self {
            Self::Overflow => "integer overflow".into(),
            Self::DivisionByZero => "division by zero".into(),
            Self::NegativeRounds => "`decay` cannot run a negative number of times".into(),
            Self::Type { taker, wanted, found } => {
                format!("type mismatch: {taker} takes {wanted}, not {found}")
            }
            Self::Unequal { operator, left, right } => {
                format!("type mismatch: `{operator}` compares {left} with {right}")
            }
            Self::Path { variable, why } => {
                format!("`{variable}` is {}; test it with `has({variable})` first", why.as_str())
            }
            Self::Budget(Exceeded { axis, limit, used }) => {
                return DenialReason::Budget { axis, limit, used, rule };
            }
            Self::Invariant { effect, detail } => {
                return DenialReason::EffectInvariantViolated { rule, effect, detail };
            }
            Self::Axiom { axiom, detail } => return DenialReason::AxiomViolation { axiom, detail },
        };
        DenialReason::RuleRejected { rule, rule_reason }
    }
}

/// What the first matching guard of a rule says, with its number from 1.
pub(crate) type Matched<'a> = Option<(usize, &'a Action)>;

pub(crate) struct Evaluator<'a> {
    request: &'a AdmissionRequest<'a>,
    budget: BudgetTracker,
}

impl<'a> Evaluator<'a> {
    pub fn new(request: &'a AdmissionRequest<'a>) -> Self {
        Self { request, budget: BudgetTracker::new(Limits::RULE) }
    }

    /// The first guard that matches. A rule too large to be judged is not judged in part.
    pub fn guards(&mut self, rule: &'a Rule) -> Result<Matched<'a>, Trouble> {
        weigh(&mut self.budget, rule)?;
        for (number, guard) in rule.guards.iter().enumerate() {
            let holds = match &guard.when {
                None => true,
                Some(condition) => self.truth(condition, "a guard")?,
            };
            if holds {
                return Ok(Some((number + 1, &guard.then)));
            }
        }
        Ok(None)
    }

    /// The budget that a rule exceeds before it begins.
    pub fn over_budget(rule: &Rule) -> Option<Exceeded> {
        weigh(&mut BudgetTracker::new(Limits::RULE), rule).err()
    }

    /// The integer operations spent so far.
    pub fn operations(&self) -> u64 {
        self.budget.snapshot().integer_operations
    }

    fn spend(&mut self, operations: usize) -> Result<(), Trouble> {
        self.budget.spend(BudgetAxis::IntegerOperations, operations as u64)?;
        Ok(())
    }
}

fn weigh(budget: &mut BudgetTracker, rule: &Rule) -> Result<(), Exceeded> {
    budget.reach(BudgetAxis::AstNodes, rule.weights.ast_nodes)?;
    budget.reach(BudgetAxis::Arguments, rule.weights.arguments)?;
    budget.reach(BudgetAxis::CallDepth, rule.weights.call_depth)?;
    Ok(())
}

fn integer(value: Value<'_>, taker: &'static str) -> Result<i64, Trouble> {
    match value {
        Value::Integer(integer) => Ok(integer),
        other => Err(Trouble::Type { taker, wanted: "an integer", found: other.type_name() }),
    }
}

fn text<'a>(value: Value<'a>, taker: &'static str) -> Result<&'a str, Trouble> {
    match value {
        Value::Text(text) => Ok(text),
        other => Err(Trouble::Type { taker, wanted: "a string", found: other.type_name() }),
    }
}
