//! Two lockfiles for one tool: ours, theirs, or both where that has one meaning.

use kiwi_model::Pin;
use kiwi_model::lockfile::{LockEnvironment, LockLink, LockRoot, Lockfile, short_chain_hash};
use std::collections::BTreeMap;

use super::compare::{by_name, compare};
use super::difference::{Difference, Field};

/// Whose side a conflict between two lockfiles is settled on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The one that is here.
    Ours,
    /// The one that comes in.
    Theirs,
    /// The higher version of each link and package, where both are the same chain of tools.
    Merge,
}

/// Settles a conflict. A merge that would have to choose between two contents of one version, or between two chains, is
/// refused with the differences that stand in its way.
pub fn settle(ours: &Lockfile, theirs: &Lockfile, side: Side) -> Result<Lockfile, Vec<Difference>> {
    match side {
        Side::Ours => Ok(ours.clone()),
        Side::Theirs => Ok(theirs.clone()),
        Side::Merge => merge(ours, theirs),
    }
}

fn merge(ours: &Lockfile, theirs: &Lockfile) -> Result<Lockfile, Vec<Difference>> {
    let mut differences = compare(ours, theirs);
    differences.retain(|difference| stands_in_the_way(ours, theirs, difference));
    if !differences.is_empty() {
        return Err(differences);
    }
    let links = ours.resolved_chain.iter().zip(&theirs.resolved_chain);
    let resolved_chain: Vec<LockLink> = links
        .map(|(ours, theirs)| if theirs.version > ours.version { theirs.clone() } else { ours.clone() })
        .collect();
    let newer = if theirs.generated_at > ours.generated_at { theirs } else { ours };
    let mut merged = Lockfile {
        environment: merge_environments(ours.environment.as_ref(), theirs.environment.as_ref()),
        chain_hash: short_chain_hash(&resolved_chain),
        ..newer.clone()
    };
    if let Some(leaf) = resolved_chain.first() {
        merged.root =
            LockRoot { version: leaf.version.clone(), integrity: leaf.integrity, ..ours.root.clone() };
    }
    merged.resolved_chain = resolved_chain;
    for (key, value) in ours.rest.iter().chain(&theirs.rest) {
        merged.rest.entry(key).or_insert_with(|| value.clone());
    }
    Ok(merged)
}

/// Versions can be ordered; everything else would have to be chosen.
fn stands_in_the_way(ours: &Lockfile, theirs: &Lockfile, difference: &Difference) -> bool {
    let version = |lock: &Lockfile| {
        let link = lock.resolved_chain.get(difference.position?)?;
        Some((link.tool_id.clone(), link.version.clone()))
    };
    match difference.field {
        Field::Length | Field::Id | Field::Space | Field::Upstream => true,
        Field::Integrity | Field::File => version(ours) == version(theirs),
        Field::Version | Field::Interpreter => false,
        Field::Package => {
            let pinned = |side: &Option<String>| side.as_deref().map(|pin| first_word(pin).to_owned());
            difference.old.is_some() && pinned(&difference.old) == pinned(&difference.new)
        }
    }
}

fn merge_environments(
    ours: Option<&LockEnvironment>,
    theirs: Option<&LockEnvironment>,
) -> Option<LockEnvironment> {
    let (Some(ours), Some(theirs)) = (ours, theirs) else { return ours.or(theirs).cloned() };
    let mut packages: BTreeMap<&str, &Pin> = by_name(&ours.requires);
    for (name, pin) in by_name(&theirs.requires) {
        let kept = packages.entry(name).or_insert(pin);
        if order(&pin.version) > order(&kept.version) {
            *kept = pin;
        }
    }
    let higher = |ours: &Option<String>, theirs: &Option<String>| {
        if theirs.as_deref().map(order) > ours.as_deref().map(order) { theirs.clone() } else { ours.clone() }
    };
    let mut rest = ours.rest.clone();
    rest.extend(theirs.rest.clone().into_iter().filter(|(key, _)| !ours.rest.contains_key(key)));
    Some(LockEnvironment {
        python: higher(&ours.python, &theirs.python),
        node: higher(&ours.node, &theirs.node),
        requires: packages.into_values().cloned().collect(),
        rest,
    })
}

fn first_word(text: &str) -> &str {
    text.split(' ').next().unwrap_or_default()
}

/// Orders versions of language packages: numbers as numbers, a number above any word (1.0.0 is above 1.0.rc1).
fn order(version: &str) -> Vec<(Option<u64>, String)> {
    version.split(['.', '-', '+']).map(|part| (part.parse().ok(), part.to_owned())).collect()
}
