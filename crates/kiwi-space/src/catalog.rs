//! The spaces as resolution sees them.

use kiwi_chain::{Candidate, Catalog, Tool};
use kiwi_model::{Explain as _, Fault, Space, ToolId, Version};
use std::sync::Arc;

use crate::error::{SpaceError, show};
use crate::kind::Item;
use crate::loader::Loader;
use crate::packages;
use crate::root::Root;
use crate::spaces::{Home, Spaces};

impl Catalog for Spaces {
    fn candidates(&self, id: &ToolId, space: Space) -> Result<Vec<Candidate>, Fault> {
        self.find(id, space).map_err(|error| error.fault())
    }

    fn load(&self, candidate: &Candidate) -> Result<Arc<Tool>, Fault> {
        if let Some(tool) = &candidate.loaded {
            return Ok(Arc::clone(tool));
        }
        self.load_candidate(candidate).map_err(|error| error.fault())
    }

    /// Looks at every folder again, so that after this call lookups know all there is.
    fn ids(&self) -> Vec<ToolId> {
        let mut ids: Vec<ToolId> = self.system.ids().collect();
        for home in [Space::Project, Space::User].into_iter().filter_map(|space| self.home(space)) {
            let Ok(Some(root)) = Root::open(&home.ai) else { continue };
            let tools = home
                .index
                .everything(&root, &self.caches().counters)
                .map(|found| found.items)
                .unwrap_or_default();
            ids.extend(tools.iter().map(|item| item.id().clone()));
            ids.extend(packages::ids(&root).map(|(ids, _)| ids).unwrap_or_default());
        }
        ids.sort();
        ids.dedup();
        ids
    }
}

impl Spaces {
    fn find(&self, id: &ToolId, space: Space) -> Result<Vec<Candidate>, SpaceError> {
        if space == Space::System {
            return self.system.candidates(id, self.caches());
        }
        // What the system defines cannot be shadowed: whatever lies there under its name, listings report it and calls
        // pass it by.
        if id.is_reserved() && self.system.has(id) {
            return Ok(Vec::new());
        }
        let Some(home) = self.home(space) else { return Ok(Vec::new()) };
        let Some(root) = Root::open(&home.ai)? else { return Ok(Vec::new()) };
        let mut candidates = self.with_loader(home, &root, |loader| self.tools(home, loader, id))?;
        for version in packages::versions(&root, id)?.0 {
            let item = Item::Package { id: id.clone(), version: version.clone() };
            candidates.push(Candidate {
                id: id.clone(),
                version,
                space,
                handle: item.handle(),
                loaded: None,
            });
        }
        // What a space nearer by may hold must not be answered by one further away. What the system itself defines goes on:
        // nearly every tool rests on it, and one folder must not break them all.
        if candidates.is_empty()
            && !self.system.has(id)
            && let Some(unreadable) = home.index.closed(&root)
        {
            return Err(unreadable);
        }
        if let Some(first) = candidates.first().filter(|_| id.is_reserved()) {
            return Err(SpaceError::Reserved { id: id.clone(), space, path: path_of(home, first) });
        }
        candidates.sort_by(|a, b| a.version.cmp(&b.version));
        for (a, b) in candidates.iter().zip(candidates.iter().skip(1)) {
            if a.version == b.version {
                let (first, second) = (path_of(home, a), path_of(home, b));
                return Err(SpaceError::Ambiguous {
                    id: id.clone(),
                    version: a.version.clone(),
                    space,
                    first,
                    second,
                });
            }
        }
        Ok(candidates)
    }

    /// The tools called `id` below `tools/` and `scripts/`. Their version stands in them, so they are read here.
    fn tools(&self, home: &Home, loader: &Loader<'_>, id: &ToolId) -> Result<Vec<Candidate>, SpaceError> {
        let counters = &self.caches().counters;
        let items = home.index.find(loader.root, id, counters)?;
        let (candidates, complete) = load_all(loader, &items)?;
        if complete {
            return Ok(candidates);
        }
        // Something vanished that its category folder could not tell.
        home.index.rebuild(loader.root, counters)?;
        let items = home.index.find(loader.root, id, counters)?;
        load_all(loader, &items).map(|(candidates, _)| candidates)
    }

    fn load_candidate(&self, candidate: &Candidate) -> Result<Arc<Tool>, SpaceError> {
        let gone = || SpaceError::Gone {
            tool: format!("{}@{}", candidate.id, candidate.version),
            handle: candidate.handle.clone(),
        };
        let tool = if candidate.space == Space::System {
            let (_, path) =
                self.system.tools().find(|(_, path)| *path == candidate.handle).ok_or_else(gone)?;
            self.system.load(&candidate.id, path, self.caches())?
        } else {
            let home = self.home(candidate.space).ok_or(SpaceError::NoSpace { space: candidate.space })?;
            let item = Item::of_handle(&candidate.handle)
                .filter(|item| *item.id() == candidate.id)
                .ok_or_else(gone)?;
            match self.load_item(home, &item) {
                Err(error) if error.is_absent() => return Err(gone()),
                loaded => loaded?,
            }
        };
        if tool.manifest.version == candidate.version { Ok(tool) } else { Err(gone()) }
    }

    /// What a tool hides: the same id in the spaces below its own.
    pub fn shadowed(&self, tool: &Tool) -> Vec<Shadowed> {
        let below = tool.space.downward().filter(|space| *space != tool.space);
        let found = below.flat_map(|space| self.find(&tool.manifest.tool_id, space).unwrap_or_default());
        found
            .map(|candidate| {
                let path = match self.home(candidate.space) {
                    Some(home) => path_of(home, &candidate),
                    None => format!("system:{}", candidate.handle),
                };
                Shadowed { space: candidate.space, version: candidate.version, path }
            })
            .collect()
    }
}

/// Loads what is there; `false` says that something no longer was.
fn load_all(loader: &Loader<'_>, items: &[Item]) -> Result<(Vec<Candidate>, bool), SpaceError> {
    let mut candidates = Vec::new();
    let mut complete = true;
    for item in items {
        match loader.load(item) {
            Ok(tool) => candidates.push(Candidate {
                id: item.id().clone(),
                version: tool.manifest.version.clone(),
                space: loader.space,
                handle: item.handle(),
                loaded: Some(tool),
            }),
            Err(error) if error.is_absent() => complete = false,
            Err(error) => return Err(error),
        }
    }
    Ok((candidates, complete))
}

/// The manifest or script of a candidate, as a person should see it.
fn path_of(home: &Home, candidate: &Candidate) -> String {
    match (&candidate.loaded, Item::of_handle(&candidate.handle)) {
        (Some(tool), _) => tool.path.clone(),
        (None, Some(item)) => show(&home.ai.join(item.main_file())),
        (None, None) => candidate.handle.clone(),
    }
}

/// A tool that another one hides.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Shadowed {
    /// Where it is.
    pub space: Space,
    /// Its version.
    pub version: Version,
    /// Its manifest or script.
    pub path: String,
}
