//! Everything in a space, good and broken: one broken manifest never hides the others.

use kiwi_chain::Tool;
use kiwi_model::{Explain as _, Fault, Space, ToolId, Version};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{SpaceError, show};
use crate::index::Odd;
use crate::kind::Item;
use crate::packages;
use crate::root::Root;
use crate::spaces::{Home, Spaces};

/// One thing that lies where tools lie.
#[derive(Debug, Clone)]
pub struct Listed {
    /// The id its name gives; not always a good one.
    pub id_hint: String,
    /// Its manifest or script.
    pub path: String,
    /// The tool, or why it is none.
    pub result: Result<Arc<Tool>, Fault>,
}

impl Spaces {
    /// Everything in a space, by id and path.
    pub fn list(&self, space: Space) -> Vec<Listed> {
        let mut listed = match self.home(space) {
            Some(home) => self.list_home(home).unwrap_or_else(|error| {
                vec![Listed { id_hint: String::new(), path: show(&home.ai), result: Err(error.fault()) }]
            }),
            None if space == Space::System => self.list_system(),
            None => Vec::new(),
        };
        mark_duplicates(&mut listed, space);
        listed.sort_by(|a, b| (&a.id_hint, &a.path).cmp(&(&b.id_hint, &b.path)));
        listed
    }

    fn list_system(&self) -> Vec<Listed> {
        let load = |id: &str, path: &str| match ToolId::parse(id) {
            Ok(id) => self.system.load(&id, path, self.caches()).map_err(|error| error.fault()),
            Err(error) => Err(Fault::new(kiwi_model::ErrorKind::InvalidManifest, error.to_string())),
        };
        let listed = |(id, path): (&str, &str)| Listed {
            id_hint: id.to_owned(),
            path: format!("system:{path}"),
            result: load(id, path),
        };
        self.system.tools().map(listed).collect()
    }

    fn list_home(&self, home: &Home) -> Result<Vec<Listed>, SpaceError> {
        let Some(root) = Root::open(&home.ai)? else { return Ok(Vec::new()) };
        let everything = home.index.everything(&root, &self.caches().counters)?;
        let (mut items, mut odd) = (everything.items, everything.odd);
        let (ids, not_ids) = packages::ids(&root)?;
        odd.extend(not_ids);
        for id in ids {
            let (versions, not_versions) = packages::versions(&root, &id)?;
            odd.extend(not_versions);
            items.extend(versions.into_iter().map(|version| Item::Package { id: id.clone(), version }));
        }
        let mut listed = self.with_loader(home, &root, |loader| {
            Ok(beside_each_other(&items, |item| {
                let result = loader.load(item).map_err(|error| match error {
                    // A symlinked folder that is no tool: said here, so that nobody wonders where its tools are.
                    error if error.is_absent() && item.kind() == crate::kind::Kind::Folder => {
                        let problem = crate::error::PathProblem::LinkedCategory;
                        SpaceError::bad_path(root.absolute(&item.relative()), problem).fault()
                    }
                    error => error.fault(),
                });
                Listed {
                    id_hint: item.id().to_string(),
                    path: show(&root.absolute(&item.main_file())),
                    result,
                }
            }))
        })?;
        listed.extend(odd.into_iter().map(|Odd { path, problem }| Listed {
            id_hint: path.file_name().map(|name| show(name.as_ref())).unwrap_or_default(),
            path: show(&path),
            result: Err(SpaceError::bad_path(path, problem).fault()),
        }));
        Ok(listed)
    }
}

/// Does the same to every item, on as many threads as there are cores. What comes out is in no order.
pub(crate) fn beside_each_other<'i, I: Sync, T: Send>(
    items: &'i [I],
    work: impl Fn(&'i I) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let run = || {
        let mut done = Vec::new();
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push(work(item));
        }
        done
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(items.len() / 8);
    std::thread::scope(|scope| {
        let spawn = |_| std::thread::Builder::new().spawn_scoped(scope, run).ok();
        let workers: Vec<_> = (1..threads).filter_map(spawn).collect();
        let mut done = run();
        for worker in workers {
            match worker.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    })
}

/// Two items with the same id and version: neither can be used.
fn mark_duplicates(listed: &mut [Listed], space: Space) {
    let mut paths: HashMap<(ToolId, Version), Vec<String>> = HashMap::new();
    for tool in listed.iter().filter_map(|listed| listed.result.as_ref().ok()) {
        paths
            .entry((tool.manifest.tool_id.clone(), tool.manifest.version.clone()))
            .or_default()
            .push(tool.path.clone());
    }
    for paths in paths.values_mut() {
        paths.sort();
    }
    for listed in listed {
        let Ok(tool) = &listed.result else { continue };
        let (id, version) = (tool.manifest.tool_id.clone(), tool.manifest.version.clone());
        if let Some([first, second, ..]) = paths.get(&(id.clone(), version.clone())).map(Vec::as_slice) {
            let (first, second) = (first.clone(), second.clone());
            listed.result = Err(SpaceError::Ambiguous { id, version, space, first, second }.fault());
        }
    }
}
