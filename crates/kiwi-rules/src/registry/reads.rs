//! What rules look at, so that a record without it is known to be undecidable.

use std::collections::BTreeSet;

use crate::rule::{Effect, Expr, Rule, Target, Variable};

/// Everything that some rules may read, spelled like the variables without their `$`.
pub(super) fn reads<'a>(rules: impl Iterator<Item = &'a Rule>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for rule in rules {
        rule.guards.iter().filter_map(|guard| guard.when.as_ref()).for_each(|when| collect(when, &mut found));
        for effect in &rule.effects {
            match effect {
                Effect::Set { target, value: amount } | Effect::Apply { target, delta: amount } => {
                    match target {
                        // What is written is read as well: invariants are about the result.
                        Target::Path(path) => drop(found.insert(path.clone())),
                        Target::Named(name) => written(name, &mut found),
                    }
                    collect(amount, &mut found);
                }
                Effect::Emit { name, values } => {
                    std::iter::once(name).chain(values).for_each(|value| collect(value, &mut found));
                }
            }
        }
    }
    found
}

fn written(name: &Expr, found: &mut BTreeSet<String>) {
    match name {
        Expr::Text(path) if path.contains('.') => drop(found.insert(path.clone())),
        Expr::Text(counter) => drop(found.insert(format!("state.{counter}"))),
        other => collect(other, found),
    }
}

fn collect(expression: &Expr, found: &mut BTreeSet<String>) {
    let mut add = |variable: &Variable| {
        let spelled = variable.to_string();
        found.insert(spelled.trim_start_matches('$').to_owned());
    };
    match expression {
        Expr::Integer(_) | Expr::Bool(_) | Expr::Text(_) => {}
        Expr::Variable(variable) | Expr::Has(variable) => add(variable),
        Expr::Not(inner) | Expr::Negate(inner) => collect(inner, found),
        Expr::Matches { text, .. } => collect(text, found),
        Expr::All(parts) | Expr::Any(parts) | Expr::Call { arguments: parts, .. } => {
            for part in parts {
                collect(part, found);
            }
        }
        Expr::Chain { first, rest } => {
            collect(first, found);
            for (_, part) in rest {
                collect(part, found);
            }
        }
    }
}
