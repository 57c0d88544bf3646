//! What others published since, and moving to it.

use kiwi_model::{ErrorKind, Explain, Fault, Space, ToolId, ToolRef, Version};
use kiwi_registry::protocol::Chain;
use kiwi_space::Record;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

use super::{Installation, Sharing, Transfer};

/// An installed tool of which the registry has something newer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Outdated {
    /// Which tool.
    pub tool_id: ToolId,
    /// The newest version that is installed.
    pub current: Version,
    /// The newest that promises to be compatible, where that is newer.
    pub compatible: Option<Version>,
    /// The newest.
    pub latest: Option<Version>,
    /// Why nobody should use the one that is installed.
    pub yanked: Option<String>,
}

/// A version that takes the place of another in a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Which tool.
    pub tool_id: ToolId,
    /// What is agreed now; nothing where the tool is new.
    pub from: Option<Version>,
    /// What the registry has for it.
    pub to: Version,
}

/// What updating a tool would change.
#[derive(Debug)]
pub struct Update {
    /// The tool.
    pub root: ToolId,
    /// Every link that changes; none where all is as new as can be.
    pub changes: Vec<Change>,
    chain: Chain,
    is_offline: bool,
}

impl Sharing<'_> {
    /// Installed tools of which there is something newer, or which were yanked.
    pub async fn outdated(&self, space: Space) -> Result<Vec<Outdated>, Fault> {
        let mut newest: BTreeMap<ToolId, Version> = BTreeMap::new();
        for record in self.installed(space)? {
            let known = newest.entry(record.tool_id).or_insert_with(|| record.version.clone());
            *known = record.version.max(known.clone());
        }
        let mut outdated = Vec::new();
        for (tool_id, current) in newest {
            let info = match self.registry.tool(&tool_id).await {
                Ok(info) => info,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(Fault::from(error)),
            };
            let caret = kiwi_model::VersionReq::parse(&format!("^{current}")).unwrap_or_default();
            let good = info.versions.iter().filter(|it| it.yanked.is_none()).map(|it| &it.version);
            let compatible = good.filter(|it| **it > current && caret.matches(it)).max().cloned();
            let latest = info.latest.filter(|latest| *latest > current);
            let own = info.versions.iter().find(|it| it.version == current);
            let yanked = own.and_then(|it| it.yanked.clone());
            if latest.is_some() || compatible.is_some() || yanked.is_some() {
                outdated.push(Outdated { tool_id, current, compatible, latest, yanked });
            }
        }
        Ok(outdated)
    }

    /// What updating these tools, or all that were installed, would change. Nothing is changed yet.
    pub async fn updates(
        &self,
        asked: &[ToolRef],
        space: Space,
        progress: Transfer<'_>,
    ) -> Result<Vec<Update>, Fault> {
        let roots = if asked.is_empty() { self.roots(space)? } else { asked.to_vec() };
        let mut updates = Vec::new();
        for ask in roots {
            let agreed = self.agreed(&ask.id, space)?;
            if agreed.is_empty() {
                let message = format!("`{}` is not installed here", ask.id);
                return Err(Fault::new(ErrorKind::NotFound, message)
                    .with_hint(format!("`kiwi install {}` installs it", ask.id)));
            }
            let (chain, is_offline) = self.chain(&ask, progress).await?;
            let change = |link: &kiwi_registry::protocol::Link| {
                let (id, to) = (&link.release.tool_id, &link.release.version);
                let from = agreed.get(id);
                (from != Some(to)).then(|| Change {
                    tool_id: id.clone(),
                    from: from.cloned(),
                    to: to.clone(),
                })
            };
            let changes = chain.links.iter().filter_map(change).collect();
            updates.push(Update { root: ask.id, changes, chain, is_offline });
        }
        Ok(updates)
    }

    /// Makes an update. The versions that were agreed before stay installed: other chains may need them.
    pub async fn update(
        &self,
        update: &Update,
        space: Space,
        progress: Transfer<'_>,
    ) -> Result<Installation, Fault> {
        self.install_chain(&update.chain, space, update.is_offline, progress).await
    }

    /// What was installed from this registry.
    pub(super) fn installed(&self, space: Space) -> Result<Vec<Record>, Fault> {
        let packages = self.spaces().packages(space).map_err(|error| error.fault())?;
        let records = packages.records().map_err(|error| error.fault())?;
        Ok(records.into_iter().filter(|record| record.source == self.registry.url()).collect())
    }

    /// Tools that were installed for themselves: nothing else that is installed runs on them.
    fn roots(&self, space: Space) -> Result<Vec<ToolRef>, Fault> {
        let installed: BTreeSet<ToolId> = self.installed(space)?.into_iter().map(|it| it.tool_id).collect();
        let mut below = BTreeSet::new();
        for id in &installed {
            below.extend(self.agreed(id, space)?.into_keys().filter(|other| other != id));
        }
        Ok(installed.into_iter().filter(|id| !below.contains(id)).map(ToolRef::from).collect())
    }

    /// The versions of a tool's chain that are agreed on: by its newest lockfile, else by what a call would use.
    fn agreed(&self, id: &ToolId, space: Space) -> Result<BTreeMap<ToolId, Version>, Fault> {
        let spaces = self.spaces();
        let locks = spaces.locks();
        let entries = locks.of(id).map_err(|error| error.fault())?;
        let newest = entries
            .into_iter()
            .filter(|entry| {
                entry.scope == space && entry.problem.is_none() && entry.name.alternative.is_none()
            })
            .max_by(|a, b| a.name.version.cmp(&b.name.version));
        if let Some(entry) = newest
            && let Ok(stored) = locks.open(&entry)
        {
            let links = stored.lock.resolved_chain.into_iter();
            return Ok(links.map(|link| (link.tool_id, link.version)).collect());
        }
        let installed = self.installed(space)?;
        if !installed.iter().any(|record| record.tool_id == *id) {
            return Ok(BTreeMap::new());
        }
        let plan = self.parts.planner.free(&id.clone().into());
        let links = plan.map(|plan| plan.links().to_vec()).unwrap_or_default();
        Ok(links.into_iter().map(|link| (link.tool_id, link.version)).collect())
    }
}
