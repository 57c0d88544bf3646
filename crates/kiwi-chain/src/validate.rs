//! Whether each parent in a chain accepts its child. All issues are reported, not the first.

use kiwi_model::manifest::ChildSchema;
use serde_json::Value;
use std::sync::Arc;

use crate::catalog::Tool;
use crate::resolve::bounds_violation;
use crate::schema::{Caches, LinkKey, complaints};

/// What to do about a parent that has no child schemas.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// An issue.
    #[default]
    Strict,
    /// A warning, for migration.
    Lenient,
}

/// The verdict on a chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// What makes the chain invalid.
    pub issues: Vec<String>,
    /// What does not.
    pub warnings: Vec<String>,
    /// How many adjacent pairs were judged.
    pub validated_pairs: usize,
    /// For each link, whether its parent accepts it; the last link has no parent.
    pub accepted: Vec<bool>,
}

impl Report {
    /// Whether the chain may run.
    pub fn valid(&self) -> bool {
        self.issues.is_empty()
    }
}

/// The verdict on one pair.
#[derive(Debug, Clone, Default)]
pub(crate) struct PairVerdict {
    issues: Vec<String>,
    warnings: Vec<String>,
}

/// Judges every adjacent pair, leaf first.
pub fn validate(chain: &[Arc<Tool>], mode: Mode, caches: &Caches) -> Report {
    let mut report = Report::default();
    for pair in chain.windows(2) {
        let [child, parent] = pair else { continue };
        let verdict = judge(child, parent, mode, caches);
        report.accepted.push(verdict.issues.is_empty());
        report.issues.extend(verdict.issues.iter().cloned());
        report.warnings.extend(verdict.warnings.iter().cloned());
        report.validated_pairs += 1;
    }
    report.accepted.push(true);
    report
}

fn judge(child: &Tool, parent: &Tool, mode: Mode, caches: &Caches) -> Arc<PairVerdict> {
    let key = (link_key(child), link_key(parent), mode == Mode::Strict);
    if let Some(verdict) = caches.pairs.get(&key) {
        return verdict;
    }
    let mut verdict = PairVerdict::default();
    schema(child, parent, mode, caches, &mut verdict);
    spaces(child, parent, &mut verdict);
    kinds(child, parent, &mut verdict);
    bounds(child, parent, &mut verdict);
    let verdict = Arc::new(verdict);
    caches.pairs.insert(key, Arc::clone(&verdict));
    verdict
}

pub(crate) fn link_key(tool: &Tool) -> LinkKey {
    LinkKey { integrity: tool.integrity, space: tool.space, category: tool.category.clone() }
}

fn schema(child: &Tool, parent: &Tool, mode: Mode, caches: &Caches, verdict: &mut PairVerdict) {
    let (child_id, parent_id) = (&child.manifest.tool_id, &parent.manifest.tool_id);
    let schemas = parent.manifest.child_schemas.as_deref().unwrap_or_default();
    if schemas.is_empty() {
        let message = format!("`{parent_id}` defines no child_schemas, so it cannot accept `{child_id}`");
        match mode {
            Mode::Strict => verdict.issues.push(message),
            Mode::Lenient => verdict.warnings.push(message),
        }
        return;
    }
    let element = child.manifest.element(child.space, &child.category);
    let Some(entry) = schemas.iter().find(|entry| fits(&element, entry)) else {
        verdict.issues.push(format!(
            "`{parent_id}` has no schema that matches `{child_id}` (type {})",
            child.manifest.tool_type
        ));
        return;
    };
    match caches.compile(&entry.schema) {
        Err(why) => {
            verdict
                .issues
                .push(format!("the schema of `{parent_id}` for `{child_id}` cannot be used: {why}"));
        }
        Ok(validator) => {
            let complaints = complaints(&validator, &element);
            verdict.issues.extend(
                complaints
                    .into_iter()
                    .map(|complaint| format!("`{parent_id}` does not accept `{child_id}`: {complaint}")),
            );
        }
    }
}

/// Whether every key of `match`, dotted paths allowed, has the value asked for.
fn fits(element: &Value, entry: &ChildSchema) -> bool {
    entry.criteria.iter().all(|(path, expected)| {
        let found =
            element.get(path).or_else(|| path.split('.').try_fold(element, |value, key| value.get(key)));
        found == Some(expected)
    })
}

fn spaces(child: &Tool, parent: &Tool, verdict: &mut PairVerdict) {
    if child.space.precedence() < parent.space.precedence() {
        verdict.issues.push(format!(
            "`{}` from the {} space cannot rest on `{}` from the {} space",
            child.manifest.tool_id, child.space, parent.manifest.tool_id, parent.space
        ));
    }
}

fn kinds(child: &Tool, parent: &Tool, verdict: &mut PairVerdict) {
    let (Some(outputs), Some(inputs)) = (&child.manifest.outputs, &parent.manifest.inputs) else { return };
    let missing: Vec<&str> =
        inputs.iter().filter(|input| !outputs.contains(input)).map(String::as_str).collect();
    if missing.is_empty() {
        return;
    }
    let (child, parent) = (&child.manifest.tool_id, &parent.manifest.tool_id);
    verdict.issues.push(if missing.len() == inputs.len() {
        format!(
            "type mismatch: `{child}` provides [{}], `{parent}` expects [{}]",
            outputs.join(", "),
            inputs.join(", ")
        )
    } else {
        format!(
            "`{parent}` expects [{}], which `{child}` does not provide; it provides [{}]",
            missing.join(", "),
            outputs.join(", ")
        )
    });
}

fn bounds(child: &Tool, parent: &Tool, verdict: &mut PairVerdict) {
    let Some(bounds) = parent.manifest.child_constraints.get(child.manifest.tool_id.as_str()) else { return };
    if let Some(why) = bounds_violation(bounds, &child.manifest.version) {
        verdict.issues.push(format!(
            "`{}` does not accept this version of `{}`: {why}",
            parent.manifest.tool_id, child.manifest.tool_id
        ));
    }
}
