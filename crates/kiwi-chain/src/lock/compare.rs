//! Every difference between two lockfiles, all at once.

use kiwi_model::lockfile::{LockEnvironment, LockLink, Lockfile};
use kiwi_model::{Digest, Pin, Space};
use std::collections::{BTreeMap, BTreeSet};

use super::difference::{Difference, Field};

/// Length, then per position id, version, integrity, files and space, then the environment and the upstream definition.
pub fn compare(old: &Lockfile, new: &Lockfile) -> Vec<Difference> {
    let mut differences = compare_chains(&old.resolved_chain, &new.resolved_chain);
    differences.extend(compare_environments(old.environment.as_ref(), new.environment.as_ref()));
    if old.upstream != new.upstream {
        let text = |lock: &Lockfile| lock.upstream.as_ref().map(ToString::to_string);
        differences.push(Difference::whole(Field::Upstream, text(old), text(new)));
    }
    differences
}

fn compare_chains(old: &[LockLink], new: &[LockLink]) -> Vec<Difference> {
    let mut differences = Vec::new();
    if old.len() != new.len() {
        let text = |links: &[LockLink]| Some(links.len().to_string());
        differences.push(Difference::whole(Field::Length, text(old), text(new)));
    }
    for position in 0..old.len().max(new.len()) {
        match (old.get(position), new.get(position)) {
            (Some(was), Some(is)) => compare_links(position, was, is, &mut differences),
            (was, is) => {
                let name = |link: &LockLink| format!("{}@{}", link.tool_id, link.version);
                let difference = Difference::whole(Field::Id, was.map(name), is.map(name));
                let tool = was.or(is).map(|link| link.tool_id.clone());
                differences.push(Difference { position: Some(position), tool, ..difference });
            }
        }
    }
    differences
}

fn compare_links(position: usize, old: &LockLink, new: &LockLink, differences: &mut Vec<Difference>) {
    let mut differ = |difference: Difference| {
        let tool = Some(old.tool_id.clone());
        differences.push(Difference { position: Some(position), tool, ..difference });
    };
    let mut text = |field: Field, was: String, is: String| {
        if was != is {
            differ(Difference::whole(field, Some(was), Some(is)));
        }
    };
    text(Field::Id, old.tool_id.to_string(), new.tool_id.to_string());
    text(Field::Version, old.version.to_string(), new.version.to_string());
    text(Field::Integrity, old.integrity.to_string(), new.integrity.to_string());
    if old.tool_id == new.tool_id && old.integrity != new.integrity {
        compare_files(old, new).into_iter().for_each(&mut differ);
    }
    if let (Some(was), Some(is)) = (old.space, new.space)
        && was != is
    {
        differ(Difference::whole(Field::Space, Some(was.to_string()), Some(is.to_string())));
    }
}

/// Which files make the difference; the manifest where none of them does.
fn compare_files(old: &LockLink, new: &LockLink) -> Vec<Difference> {
    // A lockfile without files, or the system's: nothing is known about them.
    if old.files.is_empty() && (!new.files.is_empty() || new.space == Some(Space::System)) {
        return Vec::new();
    }
    let names: BTreeSet<&String> = old.files.keys().chain(new.files.keys()).collect();
    let changed = |name: &&String| old.files.get(*name) != new.files.get(*name);
    let hash = |link: &LockLink, name: &String| link.files.get(name).map(Digest::to_string);
    let files: Vec<Difference> = names
        .into_iter()
        .filter(changed)
        .map(|name| Difference::named(Field::File, name, hash(old, name), hash(new, name)))
        .collect();
    if files.is_empty() { vec![Difference::whole(Field::File, None, None)] } else { files }
}

/// What differs between two environments: interpreters, then packages by name.
pub fn compare_environments(old: Option<&LockEnvironment>, new: Option<&LockEnvironment>) -> Vec<Difference> {
    let nothing = LockEnvironment::default();
    let (old, new) = (old.unwrap_or(&nothing), new.unwrap_or(&nothing));
    let interpreters = [("python", &old.python, &new.python), ("node", &old.node, &new.node)];
    let mut differences: Vec<Difference> = interpreters
        .into_iter()
        .filter(|(_, was, is)| was != is)
        .map(|(name, was, is)| Difference::named(Field::Interpreter, name, was.clone(), is.clone()))
        .collect();
    let (was, is) = (by_name(&old.requires), by_name(&new.requires));
    let names: BTreeSet<&str> = was.keys().chain(is.keys()).copied().collect();
    for name in names {
        let (was, is) = (was.get(name).copied(), is.get(name).copied());
        if !same_package(was, is) {
            differences.push(Difference::named(Field::Package, name, was.map(what), is.map(what)));
        }
    }
    differences
}

pub(super) fn by_name(pins: &[Pin]) -> BTreeMap<&str, &Pin> {
    pins.iter().map(|pin| (pin.name.as_str(), pin)).collect()
}

/// A pin without a digest says nothing about the files.
fn same_package(was: Option<&Pin>, is: Option<&Pin>) -> bool {
    match (was, is) {
        (Some(was), Some(is)) => {
            let silent = was.integrity.is_none() || is.integrity.is_none();
            was.version == is.version && (silent || was.integrity == is.integrity)
        }
        (was, is) => was.is_none() && is.is_none(),
    }
}

fn what(pin: &Pin) -> String {
    let integrity = pin.integrity.map(|integrity| format!(" {integrity}")).unwrap_or_default();
    format!("{}{integrity}", pin.version)
}
