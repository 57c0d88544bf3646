//! From a plan to a lockfile.

use kiwi_model::lockfile::{LOCKFILE_VERSION, LockEnvironment, LockLink, LockRoot, Lockfile, short};
use kiwi_model::{FileEntry, Space};
use serde_json::Map;
use std::collections::BTreeMap;

use crate::catalog::Tool;
use crate::plan::Plan;

/// Freezes a plan. Whoever calls has made sure that the plan may run; only a plan without links gives nothing.
pub fn freeze(plan: &Plan, environment: Option<LockEnvironment>, generated_at: &str) -> Option<Lockfile> {
    let leaf = plan.tools().first()?;
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
        resolved_chain: plan.tools().iter().map(|tool| link(tool)).collect(),
        environment,
        upstream: None,
        registry: None,
        rest: Map::new(),
    })
}

fn link(tool: &Tool) -> LockLink {
    // The binary's own files change only with the binary; listing them would bury the others.
    let files = if tool.space == Space::System {
        BTreeMap::new()
    } else {
        let entry = |FileEntry { path, sha256, .. }: &FileEntry| (path.clone(), *sha256);
        tool.files.iter().map(|file| entry(&file.entry)).collect()
    };
    let link = tool.link();
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
