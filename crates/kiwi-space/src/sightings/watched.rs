//! Which folders are watched, and what a change in each of them means.

use rustix::fs::FileType;
use rustix::fs::inotify::ReadFlags;
use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::counters::Counters;
use crate::error::SpaceError;
use crate::index::Index;
use crate::items::TextKind;
use crate::items::walk::{self, Met};
use crate::kind::{Item, Kind, MANIFEST, TREES};
use crate::loader::lacks_manifest;
use crate::packages;
use crate::root::Root;
use crate::tree;

/// More folders are not watched: each takes a kilobyte of the kernel, and others want to watch too.
const MOST_FOLDERS: usize = 32_768;

/// What a watched folder holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Holds {
    /// The folders of everything else.
    Space,
    /// Tools; the path of this category.
    Tools(String),
    /// Files of one tool, which lies in this category and in this folder.
    Tool { category: String, folder: String },
    /// Texts; the path of this folder.
    Texts(String),
    /// Folders of packages.
    Packages,
    /// Files of packages, or what was written down about them.
    Package,
}

/// What a change means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Meaning {
    Nothing,
    /// Look at the items of this folder.
    Folder(String),
    /// The same, if the tool in the second still is one.
    Tool(String, String),
    Everything,
}

impl Holds {
    /// What an event says; `name` is empty where it is about the folder itself.
    pub(super) fn meaning(&self, flags: ReadFlags, name: &str) -> Meaning {
        let is_folder = flags.contains(ReadFlags::ISDIR);
        let is_itself = name.is_empty();
        let moved = ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO;
        let comes_or_goes = flags.intersects(ReadFlags::CREATE | ReadFlags::DELETE | moved);
        let is_hidden = name.starts_with('.');
        match self {
            _ if flags.contains(ReadFlags::IGNORED) => Meaning::Nothing,
            _ if flags.intersects(ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT) => {
                Meaning::Everything
            }
            Self::Tool { category, folder } if is_itself || !is_folder => {
                Meaning::Tool(category.clone(), folder.clone())
            }
            Self::Tool { .. } | Self::Package => Meaning::Everything,
            _ if is_itself => Meaning::Everything,
            Self::Space if is_tree(name) => Meaning::Everything,
            Self::Space => Meaning::Nothing,
            Self::Packages if name == packages::LOCK || name.starts_with(packages::STAGING) => {
                Meaning::Nothing
            }
            Self::Packages => Meaning::Everything,
            Self::Tools(_) | Self::Texts(_) if is_hidden => Meaning::Nothing,
            Self::Tools(_) if name.starts_with('_') => Meaning::Nothing,
            // It may make a tool of its folder.
            Self::Tools(_) if name == MANIFEST && comes_or_goes => Meaning::Everything,
            Self::Tools(_) | Self::Texts(_) if is_folder => Meaning::Everything,
            Self::Tools(folder) | Self::Texts(folder) => Meaning::Folder(folder.clone()),
        }
    }
}

fn is_tree(name: &str) -> bool {
    let texts = [TextKind::Directive, TextKind::Knowledge].map(TextKind::folder);
    TREES.contains(&name) || texts.contains(&name) || name == packages::FOLDER
}

/// Every folder to watch, by its path; `None` if there are too many.
pub(super) fn folders(
    root: &Root,
    index: &Index,
    notes: Option<PathBuf>,
) -> Result<Option<BTreeMap<PathBuf, Holds>>, SpaceError> {
    let mut found = Found { root, folders: BTreeMap::new() };
    found.add("", Holds::Space);
    found.tools(index)?;
    for kind in [TextKind::Directive, TextKind::Knowledge] {
        walk::walk(root, kind, super::MOST_TEXTS, &mut |met| {
            if let Met::Folder(folder) = met {
                found.add(folder, Holds::Texts(folder.to_owned()));
            }
        })?;
    }
    found.packages()?;
    if let Some(notes) = notes {
        found.folders.insert(notes, Holds::Package);
    }
    Ok(Some(found.folders).filter(|folders| folders.len() <= MOST_FOLDERS))
}

struct Found<'a> {
    root: &'a Root,
    folders: BTreeMap<PathBuf, Holds>,
}

impl Found<'_> {
    fn add(&mut self, relative: &str, holds: Holds) {
        // One more than will be watched says that there are too many.
        if self.folders.len() <= MOST_FOLDERS {
            self.folders.insert(self.root.absolute(relative), holds);
        }
    }

    fn tools(&mut self, index: &Index) -> Result<(), SpaceError> {
        let counters = Counters::default();
        let collect = || {
            index.collect(
                self.root,
                &counters,
                |_| true,
                |all: &mut Vec<(u32, String)>, row, id, kind| {
                    if kind == Kind::Folder {
                        all.push((row, id.to_owned()));
                    }
                },
            )
        };
        let (mut rows, mut tools) = collect()?;
        let is_lost = |rows: &[String], (row, id): &(u32, String)| {
            let item = rows.get(*row as usize).and_then(|folder| tool(folder, id));
            item.is_some_and(|item| is_plain_folder(self.root, &item) && lacks_manifest(self.root, &item))
        };
        if tools.iter().any(|tool| is_lost(&rows, tool)) {
            index.rebuild(self.root, &counters)?;
            (rows, tools) = collect()?;
        }
        for row in &rows {
            self.add(row, Holds::Tools(row.clone()));
        }
        for (row, id) in tools {
            let Some(item) = rows.get(row as usize).and_then(|folder| tool(folder, &id)) else { continue };
            let Item::Tool { folder: category, .. } = &item else { continue };
            let folder = item.relative();
            self.inside(&folder, &Holds::Tool { category: category.clone(), folder: folder.clone() });
        }
        Ok(())
    }

    fn packages(&mut self) -> Result<(), SpaceError> {
        self.add(packages::FOLDER, Holds::Packages);
        self.add(packages::RECORDS, Holds::Package);
        for item in super::packages_there(self.root)? {
            self.add(&format!("{}/{}", packages::FOLDER, item.id()), Holds::Packages);
            self.inside(&item.relative(), &Holds::Package);
        }
        Ok(())
    }

    /// A folder and those in it. What a symlink leads to is not watched.
    fn inside(&mut self, folder: &str, holds: &Holds) {
        self.add(folder, holds.clone());
        let mut inner = Vec::new();
        let _ = tree::walk(self.root, folder, &mut |met| {
            if met.kind == FileType::Directory && !met.is_link {
                inner.push(met.path.to_owned());
            }
        });
        for path in inner {
            self.add(&format!("{folder}/{path}"), holds.clone());
        }
    }
}

fn tool(folder: &str, id: &str) -> Option<Item> {
    Item::of_handle(&format!("folder:{folder}/{id}"))
}

fn is_plain_folder(root: &Root, item: &Item) -> bool {
    let stat = root.stat(&item.relative());
    stat.is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}
