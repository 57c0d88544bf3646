//! Lockfiles as values: frozen from a plan, compared in words, merged where that has one meaning.

use kiwi_model::lockfile::{
    LOCKFILE_VERSION, LockEnvironment, LockLink, LockRoot, Lockfile, short, short_chain_hash,
};
use kiwi_model::{Digest, Space};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::Tool;
use crate::plan::Plan;

/// One difference between what was agreed and what is.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Difference {
    /// Position in the chain, leaf first; none for what concerns the whole.
    pub position: Option<usize>,
    /// The tool at that position.
    pub tool: Option<String>,
    /// What differs.
    pub field: String,
    /// As it was agreed.
    pub old: String,
    /// As it is.
    pub new: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let (Some(position), Some(tool)) = (self.position, &self.tool) {
            write!(f, "link {} `{tool}`: ", position + 1)?;
        }
        write!(f, "{} {} → {}", self.field, self.old, self.new)
    }
}

/// Freezes a plan. Whoever calls has made sure that the plan may run.
pub fn freeze(plan: &Plan, environment: Option<LockEnvironment>, generated_at: &str) -> Option<Lockfile> {
    let leaf = plan.tools().first()?;
    let resolved_chain: Vec<LockLink> = plan.tools().iter().map(|tool| frozen(tool)).collect();
    Some(Lockfile {
        lockfile_version: LOCKFILE_VERSION,
        generated_at: generated_at.to_owned(),
        root: LockRoot {
            tool_id: leaf.manifest.tool_id.clone(),
            version: leaf.manifest.version.clone(),
            integrity: leaf.integrity,
            category: leaf.category.clone(),
            rest: Map::new(),
        },
        chain_hash: short(&plan.chain_hash()),
        resolved_chain,
        environment,
        upstream: None,
        registry: None,
        rest: Map::new(),
    })
}

fn frozen(tool: &Tool) -> LockLink {
    let link = tool.link();
    // The binary's own files change only with the binary; listing them would bury the others.
    let files = if tool.space == Space::System {
        BTreeMap::new()
    } else {
        tool.files.iter().map(|file| (file.entry.path.clone(), file.entry.sha256)).collect()
    };
    LockLink {
        tool_id: link.tool_id,
        version: link.version,
        integrity: link.integrity,
        executor: link.executor,
        space: Some(link.space),
        files,
        rest: Map::new(),
    }
}

/// Every difference between two lockfiles: length, then per position id, version, integrity, files, space, then the
/// environment and the upstream definition.
pub fn compare(old: &Lockfile, new: &Lockfile) -> Vec<Difference> {
    let mut differences = Vec::new();
    let (before, after) = (old.resolved_chain.len(), new.resolved_chain.len());
    if before != after {
        differences.push(whole("chain length", before, after));
    }
    for (position, (old, new)) in old.resolved_chain.iter().zip(&new.resolved_chain).enumerate() {
        compare_links(position, old, new, &mut differences);
    }
    let common = before.min(after);
    differences.extend(
        old.resolved_chain.iter().enumerate().skip(common).map(|(at, link)| {
            at_link(at, link, "link", format!("{}@{}", link.tool_id, link.version), "none")
        }),
    );
    differences.extend(
        new.resolved_chain.iter().enumerate().skip(common).map(|(at, link)| {
            at_link(at, link, "link", "none", format!("{}@{}", link.tool_id, link.version))
        }),
    );
    compare_environments(old.environment.as_ref(), new.environment.as_ref(), &mut differences);
    if old.upstream != new.upstream {
        let text = |upstream: &Option<Value>| {
            upstream.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string)
        };
        differences.push(whole("upstream definition", text(&old.upstream), text(&new.upstream)));
    }
    differences
}

fn compare_links(position: usize, old: &LockLink, new: &LockLink, differences: &mut Vec<Difference>) {
    if old.tool_id != new.tool_id {
        differences.push(at_link(position, old, "tool", &old.tool_id, &new.tool_id));
    }
    if old.version != new.version {
        differences.push(at_link(position, old, "version", &old.version, &new.version));
    }
    if old.integrity != new.integrity {
        differences.push(at_link(position, old, "integrity", old.integrity.short(), new.integrity.short()));
        if !old.files.is_empty() && !new.files.is_empty() {
            let names: BTreeSet<&String> = old.files.keys().chain(new.files.keys()).collect();
            for name in names {
                let hash = |files: &BTreeMap<String, Digest>| {
                    files.get(name).map_or_else(|| "none".to_owned(), Digest::short)
                };
                if old.files.get(name) != new.files.get(name) {
                    differences.push(at_link(
                        position,
                        old,
                        &format!("file `{name}`"),
                        hash(&old.files),
                        hash(&new.files),
                    ));
                }
            }
        }
    }
    if let (Some(was), Some(is)) = (old.space, new.space)
        && was != is
    {
        differences.push(at_link(position, old, "space", was, is));
    }
}

fn compare_environments(
    old: Option<&LockEnvironment>,
    new: Option<&LockEnvironment>,
    differences: &mut Vec<Difference>,
) {
    let (Some(old), Some(new)) = (old, new) else {
        if old.is_some() != new.is_some() {
            let text =
                |environment: Option<&LockEnvironment>| if environment.is_some() { "pinned" } else { "none" };
            differences.push(whole("environment", text(old), text(new)));
        }
        return;
    };
    let version = |version: &Option<String>| version.clone().unwrap_or_else(|| "none".into());
    for (name, was, is) in [("python", &old.python, &new.python), ("node", &old.node, &new.node)] {
        if was != is {
            differences.push(whole(&format!("environment {name}"), version(was), version(is)));
        }
    }
    let (was, is) = (packages(&old.requires), packages(&new.requires));
    let names: BTreeSet<&str> = was.keys().chain(is.keys()).copied().collect();
    for name in names {
        if was.get(name) != is.get(name) {
            differences.push(whole(
                &format!("package `{name}`"),
                was.get(name).unwrap_or(&"none"),
                is.get(name).unwrap_or(&"none"),
            ));
        }
    }
}

/// `name==version sha256:…` by name.
fn packages(requires: &[String]) -> BTreeMap<&str, &str> {
    requires.iter().map(|entry| entry.split_once("==").unwrap_or((entry, ""))).collect()
}

fn whole(field: &str, old: impl ToString, new: impl ToString) -> Difference {
    Difference {
        position: None,
        tool: None,
        field: field.to_owned(),
        old: old.to_string(),
        new: new.to_string(),
    }
}

fn at_link(
    position: usize,
    link: &LockLink,
    field: &str,
    old: impl ToString,
    new: impl ToString,
) -> Difference {
    Difference {
        position: Some(position),
        tool: Some(link.tool_id.to_string()),
        field: field.to_owned(),
        old: old.to_string(),
        new: new.to_string(),
    }
}

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

/// Settles a conflict. A merge that would have to choose between two contents of one version is refused with those.
pub fn settle(ours: &Lockfile, theirs: &Lockfile, side: Side) -> Result<Lockfile, Vec<Difference>> {
    match side {
        Side::Ours => Ok(ours.clone()),
        Side::Theirs => Ok(theirs.clone()),
        Side::Merge => merge_locks(ours, theirs),
    }
}

fn merge_locks(ours: &Lockfile, theirs: &Lockfile) -> Result<Lockfile, Vec<Difference>> {
    let unmergeable: Vec<Difference> = compare(ours, theirs)
        .into_iter()
        .filter(|difference| match difference.field.as_str() {
            "chain length" | "tool" | "link" | "space" | "upstream definition" => true,
            "integrity" => same_version(ours, theirs, difference.position),
            _ => false,
        })
        .chain(clashing_packages(ours.environment.as_ref(), theirs.environment.as_ref()))
        .collect();
    if !unmergeable.is_empty() {
        return Err(unmergeable);
    }
    let higher = |(ours, theirs): (&LockLink, &LockLink)| {
        if theirs.version > ours.version { theirs.clone() } else { ours.clone() }
    };
    let resolved_chain: Vec<LockLink> =
        ours.resolved_chain.iter().zip(&theirs.resolved_chain).map(higher).collect();
    let newer = if theirs.generated_at > ours.generated_at { theirs } else { ours };
    let mut merged = Lockfile {
        environment: merge_environments(ours.environment.as_ref(), theirs.environment.as_ref()),
        ..newer.clone()
    };
    if let Some(first) = resolved_chain.first() {
        merged.root =
            LockRoot { version: first.version.clone(), integrity: first.integrity, ..ours.root.clone() };
    }
    merged.chain_hash = short_chain_hash(&resolved_chain);
    merged.resolved_chain = resolved_chain;
    for (key, value) in ours.rest.iter().chain(&theirs.rest) {
        merged.rest.entry(key).or_insert_with(|| value.clone());
    }
    Ok(merged)
}

fn same_version(ours: &Lockfile, theirs: &Lockfile, position: Option<usize>) -> bool {
    let version = |lock: &Lockfile| Some(lock.resolved_chain.get(position?)?.version.clone());
    version(ours) == version(theirs)
}

/// Packages that both sides have in the same version with different hashes.
fn clashing_packages(ours: Option<&LockEnvironment>, theirs: Option<&LockEnvironment>) -> Vec<Difference> {
    let (Some(ours), Some(theirs)) = (ours, theirs) else { return Vec::new() };
    let theirs = packages(&theirs.requires);
    let version = |pin: &str| pin.split_whitespace().next().unwrap_or_default().to_owned();
    packages(&ours.requires)
        .into_iter()
        .filter_map(|(name, own)| {
            theirs
                .get(name)
                .filter(|other| version(own) == version(other) && **other != own)
                .map(|other| whole(&format!("package `{name}`"), own, other))
        })
        .collect()
}

fn merge_environments(
    ours: Option<&LockEnvironment>,
    theirs: Option<&LockEnvironment>,
) -> Option<LockEnvironment> {
    let (Some(ours), Some(theirs)) = (ours, theirs) else { return ours.or(theirs).cloned() };
    let mut merged = packages(&ours.requires);
    for (name, pin) in packages(&theirs.requires) {
        let entry = merged.entry(name).or_insert(pin);
        if version_key(pin) > version_key(entry) {
            *entry = pin;
        }
    }
    let higher = |a: &Option<String>, b: &Option<String>| {
        if a.as_deref().map(version_key) >= b.as_deref().map(version_key) { a.clone() } else { b.clone() }
    };
    Some(LockEnvironment {
        python: higher(&ours.python, &theirs.python),
        node: higher(&ours.node, &theirs.node),
        requires: merged.into_iter().map(|(name, pin)| format!("{name}=={pin}")).collect(),
        rest: ours.rest.clone(),
    })
}

/// Orders versions of language packages: numbers as numbers, the rest as text.
fn version_key(pin: &str) -> Vec<(u64, String)> {
    let version = pin.split_whitespace().next().unwrap_or_default();
    version.split(['.', '-', '+']).map(|part| (part.parse().unwrap_or(0), part.to_owned())).collect()
}
