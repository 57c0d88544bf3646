//! From what was written to what is meant. Everything that can be known without a request is said here; what depends
//! on values (types, ranges, absent paths) is the evaluator's, since there it is a denial and not a broken file.

mod effect;
mod expression;
mod names;

use crate::problem::Complaint;
use crate::rule::{Expr, Guard, Rule, Weights};
use crate::syntax::RuleSyntax;

/// A rule under examination: what is wrong with it, and what it weighs.
#[derive(Default)]
struct Checker {
    complaints: Vec<Complaint>,
    weights: Weights,
    /// How many calls the part being looked at stands in.
    depth: u64,
}

/// Checks one rule. Its file, line and text are filled in by whoever knows them.
pub(crate) fn check(syntax: &RuleSyntax) -> Result<Rule, Vec<Complaint>> {
    let mut checker = Checker::default();
    checker.weights.ast_nodes = 1;
    let guards = checker.guards(syntax);
    let effects: Vec<_> = syntax.effects.iter().filter_map(|call| checker.effect(call)).collect();
    if !checker.complaints.is_empty() {
        return Err(checker.complaints);
    }
    Ok(Rule {
        name: syntax.name.text.clone(),
        file: String::new(),
        line: 0,
        text: String::new(),
        examples: syntax.examples.len(),
        specificity: guards.iter().map(|guard| conjuncts(guard.when.as_ref())).max().unwrap_or(0),
        guards,
        effects,
        weights: checker.weights,
    })
}

/// The top-level conjuncts of a condition; `else` demands nothing.
fn conjuncts(condition: Option<&Expr>) -> usize {
    match condition {
        None => 0,
        Some(Expr::All(parts)) => parts.len(),
        Some(_) => 1,
    }
}

impl Checker {
    fn guards(&mut self, syntax: &RuleSyntax) -> Vec<Guard> {
        let mut guards = Vec::new();
        let mut closed = false;
        for clause in &syntax.guards {
            if closed {
                let complaint = Complaint::new(clause.span, "this guard can never be reached");
                self.complaints.push(complaint.with_hint("`else` comes last: guards are tried from the top"));
                break;
            }
            closed = clause.condition.is_none();
            self.weights.ast_nodes += 1;
            let when = match &clause.condition {
                None => None,
                Some(node) => match self.expression(node) {
                    Some(condition) => Some(condition),
                    None => continue,
                },
            };
            guards.push(Guard { when, then: clause.action.clone() });
        }
        guards
    }
}
