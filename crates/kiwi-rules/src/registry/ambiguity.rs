//! Rules that hold the same conditions to mean different things: nobody could say what their author meant.

use kiwi_model::canonical;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

use super::load::Loaded;
use crate::problem::Complaint;
use crate::rule::{Expr, Guard, Rule};
use crate::syntax::{Action, Name};
use crate::{LoadError, MAX_PROBLEMS, Problem};

pub(super) fn refuse(files: &[Loaded<'_>]) -> Result<(), LoadError> {
    // Equal conditions have equal specificity, so the conditions alone make the groups.
    let mut groups: BTreeMap<String, Vec<(&Loaded<'_>, &Rule, &Name)>> = BTreeMap::new();
    for file in files {
        for (rule, syntax) in file.rules.iter().zip(&file.syntax.rules) {
            groups.entry(conditions(&rule.guards)).or_default().push((file, rule, &syntax.name));
        }
    }
    let (mut rules, mut problems) = (BTreeSet::new(), Vec::new());
    for group in groups.values() {
        let Some(((_, first, _), others)) = group.split_first() else { continue };
        for (file, rule, name) in others.iter().filter(|(_, rule, _)| !agree(first, rule)) {
            rules.extend([first.name.clone(), rule.name.clone()]);
            if problems.len() >= MAX_PROBLEMS {
                continue;
            }
            let message =
                format!("rules `{}` and `{}` answer the same conditions differently", first.name, rule.name);
            let complaint = Complaint::new(name.span, message)
                .with_hint("give one of the rules another condition, or both the same answer");
            problems.push(Problem::new(file.name, file.text, complaint));
        }
    }
    if rules.is_empty() {
        return Ok(());
    }
    problems
        .sort_by(|a: &Problem, b: &Problem| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
    Err(LoadError::Ambiguous { rules: rules.into_iter().collect(), problems })
}

/// The conditions of a rule in their order; `else` is `true`.
fn conditions(guards: &[Guard]) -> String {
    let always = Expr::Bool(true);
    let list: Vec<Value> = guards.iter().map(|guard| json!(guard.when.as_ref().unwrap_or(&always))).collect();
    canonical(&Value::Array(list)).unwrap_or_default()
}

/// Whether two rules give the same answers; their reasons may differ.
fn agree(a: &Rule, b: &Rule) -> bool {
    let kind = |guard: &Guard| match guard.then {
        Action::Admit => 0,
        Action::Ask(_) => 1,
        Action::Reject(_) => 2,
    };
    a.guards.iter().map(kind).eq(b.guards.iter().map(kind))
}
