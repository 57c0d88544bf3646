//! What lies in a space, without reading it: enough for whoever keeps something in step with the items.
//!
//! A sighting costs one stat for a tool of one file. Which items there are is what the index of tools, the walk through
//! texts and the folders of packages say; nothing here has rules of its own about that.

mod look;
mod lot;
mod mark;
mod read;
mod still;
mod system;
mod waker;
mod watched;
mod watcher;

pub use read::Sighted;
pub use waker::Waker;
pub use watcher::{Stirred, Watcher};

use kiwi_model::Space;
use std::collections::BTreeSet;

use crate::error::SpaceError;
use crate::items::TextKind;
use crate::items::walk::{self, Met};
use crate::kind::{Item, Kind, TREES};
use crate::packages;
use crate::root::Root;
use crate::spaces::{Home, Spaces};
use look::Look;
use lot::Lot;

/// Names that are looked at below the folder of one kind of text. They are not read, so there may be many.
const MOST_TEXTS: usize = 2_000_000;

/// One item as it lies there: enough to tell whether it may have changed since it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    /// Where it lies, from the root of its space: `tools/data/x.yaml`, `packages/x/1.2.3`, `knowledge/a/b.md`, in the
    /// system `system:tools/core/x`. Names it in its space.
    pub key: Box<str>,
    /// Changes whenever a file of its own may have changed; otherwise it stays the same, in every process. What it
    /// shares with others (`tools/lib`) is not in it.
    pub stamp: u64,
    /// How much of the key is the folder.
    folder: u32,
    form: Form,
}

/// What a sighting is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Tool(Kind),
    Package,
    Text(TextKind),
}

/// What somebody asks about.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    /// The folders that count; without any, all of them.
    folders: Option<&'a BTreeSet<String>>,
    /// Whether something, by key and stamp, is no news.
    is_known: IsKnown<'a>,
}

/// Asked by many threads at once.
type IsKnown<'a> = &'a (dyn Fn(&str, u64) -> bool + Sync);

impl Wanted<'_> {
    fn has(self, folder: &str) -> bool {
        self.folders.is_none_or(|folders| folders.contains(folder))
    }

    /// Whether any of them is, or lies in, one of these trees.
    fn any_below(self, trees: &[&str]) -> bool {
        let tree = |folder: &String| trees.contains(&folder.split('/').next().unwrap_or_default());
        self.folders.is_none_or(|folders| folders.iter().any(tree))
    }
}

impl Sighting {
    /// The folder it lies in: that of its category (`tools/data`, `knowledge/a`), or `packages`.
    pub fn folder(&self) -> &str {
        self.key.get(..self.folder as usize).unwrap_or_default()
    }
}

impl Spaces {
    /// Every item of a space: tools, installed packages, directives, knowledge, in no order. What has an impossible name
    /// is left out; listings tell of it.
    pub fn sightings(&self, space: Space) -> Result<Vec<Sighting>, SpaceError> {
        self.look(space, Wanted { folders: None, is_known: &|_, _| false })
    }

    /// Only those whose folder is named.
    pub fn sightings_in(
        &self,
        space: Space,
        folders: &BTreeSet<String>,
    ) -> Result<Vec<Sighting>, SpaceError> {
        self.look(space, Wanted { folders: Some(folders), is_known: &|_, _| false })
    }

    /// Only what is news to whoever asks: `is_known` is told the key and the stamp of everything that lies there, or in
    /// the folders that are named. Where little changed, this costs little more than looking.
    pub fn news(
        &self,
        space: Space,
        folders: Option<&BTreeSet<String>>,
        is_known: &(dyn Fn(&str, u64) -> bool + Sync),
    ) -> Result<Vec<Sighting>, SpaceError> {
        self.look(space, Wanted { folders, is_known })
    }

    /// Watches the folders that hold items. To miss nothing, begin before looking. `None` where there is nothing to watch
    /// yet, where there are too many folders, and where the kernel does not tell: then look again from time to time.
    pub fn watch(&self, space: Space) -> Result<Option<Watcher>, SpaceError> {
        let Some(home) = self.home(space) else { return Ok(None) };
        Watcher::begin(home, self.user_ai())
    }

    fn look(&self, space: Space, wanted: Wanted<'_>) -> Result<Vec<Sighting>, SpaceError> {
        if space == Space::System {
            return Ok(self.system_sightings(wanted));
        }
        let Some(home) = self.home(space) else { return Ok(Vec::new()) };
        let Some(root) = Root::open(&home.ai)? else { return Ok(Vec::new()) };
        self.with_loader(home, &root, |loader| {
            let look = Look::new(&root, loader.user, &home.owner, wanted.is_known);
            let mut found =
                if wanted.any_below(&TREES) { self.tools_seen(home, &look, wanted)? } else { Vec::new() };
            for kind in [TextKind::Directive, TextKind::Knowledge] {
                if wanted.any_below(&[kind.folder()]) {
                    found.extend(texts_seen(&look, kind, wanted)?);
                }
            }
            if wanted.has(packages::FOLDER) {
                found.extend(look.packages(&packages_there(&root)?));
            }
            Ok(found)
        })
    }

    fn tools_seen(
        &self,
        home: &Home,
        look: &Look<'_>,
        wanted: Wanted<'_>,
    ) -> Result<Vec<Sighting>, SpaceError> {
        let counters = &self.caches().counters;
        let tools = || {
            let add = |lot: &mut Lot, row: u32, id: &str, kind| lot.add(row, id, Form::Tool(kind));
            home.index.collect(look.root, counters, |folder| wanted.has(folder), add)
        };
        let (folders, lot) = tools()?;
        let looked = look.at(&folders, &lot);
        if !looked.is_out_of_date {
            return Ok(looked.sightings);
        }
        // A folder that stopped being a tool may be a category now, and only a fresh look shows what is in it.
        home.index.rebuild(look.root, counters)?;
        let (folders, lot) = tools()?;
        Ok(look.at(&folders, &lot).sightings)
    }
}

fn texts_seen(look: &Look<'_>, kind: TextKind, wanted: Wanted<'_>) -> Result<Vec<Sighting>, SpaceError> {
    let (mut folders, mut lot): (Vec<String>, Lot) = Default::default();
    let mut is_in = false;
    walk::walk(look.root, kind, MOST_TEXTS, &mut |met| match met {
        Met::Folder(folder) => {
            is_in = wanted.has(folder);
            if is_in {
                folders.push(folder.to_owned());
            }
        }
        Met::File(folder, name) if is_in && walk::is_item(&format!("{folder}/{name}"), kind) => {
            lot.add(u32::try_from(folders.len()).unwrap_or(0).saturating_sub(1), name, Form::Text(kind));
        }
        Met::File(..) | Met::Odd(..) => {}
    })?;
    Ok(look.at(&folders, &lot).sightings)
}

fn packages_there(root: &Root) -> Result<Vec<Item>, SpaceError> {
    let mut items = Vec::new();
    for id in packages::ids(root)?.0 {
        // One folder that cannot be read does not hide the others; listings tell of it.
        let Ok((versions, _)) = packages::versions(root, &id) else { continue };
        items.extend(versions.into_iter().map(|version| Item::Package { id: id.clone(), version }));
    }
    Ok(items)
}
