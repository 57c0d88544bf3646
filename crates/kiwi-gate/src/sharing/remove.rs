//! Taking installed tools away.

use kiwi_model::{ErrorKind, Explain, Fault, Space, ToolId, ToolRef, Version};
use serde::Serialize;

use crate::kernel::Kernel;

/// What was taken away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Uninstalled {
    /// Which tool.
    pub tool_id: ToolId,
    /// Which versions.
    pub versions: Vec<Version>,
    /// Keys of lockfiles that spoke of them.
    pub lockfiles: Vec<String>,
}

impl Kernel {
    /// Removes installed versions of a tool with their lockfiles. What another lockfile needs stays, unless `force`.
    pub fn uninstall(&self, ask: &ToolRef, space: Space, force: bool) -> Result<Uninstalled, Fault> {
        let spaces = self.spaces();
        let packages = spaces.packages(space).map_err(|error| error.fault())?;
        let is_meant = |version: &Version| ask.requirement.as_ref().is_none_or(|it| it.matches(version));
        let there = packages.versions(&ask.id).map_err(|error| error.fault())?;
        let versions: Vec<Version> = there.into_iter().filter(is_meant).collect();
        if versions.is_empty() {
            return Err(Fault::new(
                ErrorKind::NotFound,
                format!("`{ask}` is not installed in the {space} space"),
            )
            .with_hint("`kiwi tool list` shows what is here"));
        }
        let locks = spaces.locks();
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for entry in locks.entries(space, None, &mut |_, _| ()).map_err(|error| error.fault())? {
            if entry.name.tool_id == ask.id {
                own.extend(versions.contains(&entry.name.version).then_some(entry.key));
            } else if let Ok(stored) = locks.open(&entry) {
                let uses = |link: &kiwi_model::lockfile::LockLink| {
                    link.tool_id == ask.id && versions.contains(&link.version)
                };
                others.extend(stored.lock.resolved_chain.iter().any(uses).then_some(entry.key));
            }
        }
        if let Some(other) = others.first()
            && !force
        {
            let message = format!("`{ask}` is needed by `{other}`{}", more(others.len() - 1));
            return Err(Fault::new(ErrorKind::VersionConflict, message)
                .with_hint("uninstall that first, or say `--force`")
                .with_details(serde_json::json!({"needed_by": others})));
        }
        for version in &versions {
            packages.remove(&ask.id, version).map_err(|error| error.fault())?;
        }
        if !own.is_empty() {
            let mut writer = locks.writer(space).map_err(|error| error.fault())?;
            for key in &own {
                writer.remove(key).map_err(|error| error.fault())?;
            }
            writer.finish().map_err(|error| error.fault())?;
        }
        Ok(Uninstalled { tool_id: ask.id.clone(), versions, lockfiles: own })
    }
}

fn more(count: usize) -> String {
    if count == 0 { String::new() } else { format!(" and {count} more") }
}
