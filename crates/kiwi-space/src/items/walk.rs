//! The files below `directives/` and `knowledge/`. No symlink is followed, and nothing is read without a bound.

use kiwi_model::{Explain as _, Space};
use rustix::fs::{Dir, FileType};
use std::io::Read as _;
use std::sync::Arc;

use super::{ListedText, Place, TextKind};
use crate::error::{PathProblem, SpaceError, show};
use crate::root::Root;

/// A text that is longer is none that anybody reads.
const MOST_BYTES: u64 = 1 << 20;
/// Files that are looked at, and folders within folders.
const MOST_FILES: usize = 20_000;
const DEEPEST: usize = 8;
const SUFFIX: &str = ".md";
const SKILL: &str = "SKILL.md";

/// What a path below the kind's folder says.
pub(crate) struct Name<'a> {
    pub id: &'a str,
    category: &'a str,
    is_skill: bool,
}

impl<'a> Name<'a> {
    /// Reads `category/name.md`, or `category/name/SKILL.md`. Anything else is no item.
    pub fn of(below: &'a str) -> Option<Self> {
        let (folder, file) = below.rsplit_once('/').unwrap_or(("", below));
        if file == SKILL {
            let (category, id) = folder.rsplit_once('/').unwrap_or(("", folder));
            return (!id.is_empty()).then_some(Self { id, category, is_skill: true });
        }
        let id = file.strip_suffix(SUFFIX).filter(|id| !id.is_empty() && !id.starts_with('.'))?;
        Some(Self { id, category: folder, is_skill: false })
    }

    pub fn place<'p>(&'p self, kind: TextKind, space: Space, path: &'p str) -> Place<'p> {
        Place { kind, id: self.id, category: self.category, space, path, is_skill: self.is_skill }
    }
}

/// What a walk meets.
pub(crate) enum Met<'a> {
    /// A file that may be an item: its folder and its name.
    File(&'a str, &'a str),
    /// A folder that is looked through.
    Folder(&'a str),
    /// Something that is not looked at, and why.
    Odd(&'a str, PathProblem),
}

/// Shows everything below the folder of a kind; more than `most` names are refused.
pub(crate) fn walk(
    root: &Root,
    kind: TextKind,
    most: usize,
    see: &mut dyn FnMut(Met<'_>),
) -> Result<(), SpaceError> {
    let mut folders = vec![(kind.folder().to_owned(), 0_usize)];
    let mut seen = 0_usize;
    while let Some((folder, depth)) = folders.pop() {
        let Ok(fd) = root.open_plain_folder(&folder) else {
            // The folder of the kind need not be there; one inside that cannot be opened is told.
            if depth > 0 {
                see(Met::Odd(&folder, PathProblem::Unreadable));
            }
            continue;
        };
        see(Met::Folder(&folder));
        let entries = Dir::new(fd).map_err(|error| SpaceError::unreadable(root.absolute(&folder), error))?;
        for entry in entries {
            let Ok(entry) = entry else {
                see(Met::Odd(&folder, PathProblem::Unreadable));
                break;
            };
            let Ok(name) = entry.file_name().to_str() else {
                see(Met::Odd(&folder, PathProblem::NotUtf8));
                continue;
            };
            if name.starts_with('.') {
                continue;
            }
            seen += 1;
            if seen > most {
                let path = show(&root.absolute(kind.folder()));
                return Err(SpaceError::TooLarge { path, what: "files", limit: most as u64 });
            }
            let path = || format!("{folder}/{name}");
            match kind_of(root, path, entry.file_type()) {
                FileType::Directory if depth < DEEPEST => folders.push((path(), depth + 1)),
                FileType::Directory => see(Met::Odd(&path(), PathProblem::TooDeep)),
                _ => see(Met::File(&folder, name)),
            }
        }
    }
    Ok(())
}

/// Every item of a kind.
pub(super) fn all(root: &Root, kind: TextKind, space: Space) -> Result<Vec<ListedText>, SpaceError> {
    let mut listed = Vec::new();
    walk(root, kind, MOST_FILES, &mut |met| match met {
        Met::File(folder, name) => listed.extend(one(root, &format!("{folder}/{name}"), kind, space)),
        Met::Folder(_) => {}
        Met::Odd(path, problem) => listed.push(odd(root, path, problem)),
    })?;
    Ok(listed)
}

fn kind_of(root: &Root, path: impl Fn() -> String, told: FileType) -> FileType {
    match told {
        FileType::Unknown => root.stat(&path()).map_or(told, |stat| FileType::from_raw_mode(stat.st_mode)),
        told => told,
    }
}

/// Reads one file; `None` if its name is that of no item.
pub(crate) fn one(root: &Root, path: &str, kind: TextKind, space: Space) -> Option<ListedText> {
    let name = Name::of(below(path, kind)?)?;
    let shown = show(&root.absolute(path));
    let place = name.place(kind, space, &shown);
    let bytes = bytes(root, path).map_err(|error| error.fault());
    let result = bytes.and_then(|bytes| place.read(&bytes)).map(Arc::new);
    Some(ListedText { id_hint: name.id.to_owned(), path: shown.clone(), result })
}

/// Whether a path from the space's root is that of an item, by its spelling alone.
pub(crate) fn is_item(path: &str, kind: TextKind) -> bool {
    below(path, kind).and_then(Name::of).is_some()
}

/// Whether the walk would come to a file.
pub(crate) fn reaches(root: &Root, path: &str, kind: TextKind) -> bool {
    let Some((folder, _)) = path.rsplit_once('/') else { return false };
    let is_seen = path.split('/').all(|part| !part.starts_with('.'));
    // The kind's own folder is not counted.
    let is_deep = folder.split('/').count() > DEEPEST + 1;
    is_item(path, kind) && is_seen && !is_deep && root.open_plain_folder(folder).is_ok()
}

/// What stands behind the kind's folder.
pub(super) fn below(path: &str, kind: TextKind) -> Option<&str> {
    path.strip_prefix(kind.folder())?.strip_prefix('/')
}

fn bytes(root: &Root, path: &str) -> Result<Vec<u8>, SpaceError> {
    let opened = root.open_file(path)?;
    let mut bytes = Vec::new();
    let unreadable = |error| SpaceError::unreadable(root.absolute(path), error);
    opened.file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MOST_BYTES {
        let path = show(&root.absolute(path));
        return Err(SpaceError::TooLarge { path, what: "bytes", limit: MOST_BYTES });
    }
    Ok(bytes)
}

fn odd(root: &Root, path: &str, problem: PathProblem) -> ListedText {
    let absolute = root.absolute(path);
    ListedText {
        id_hint: absolute.file_name().map(|name| show(name.as_ref())).unwrap_or_default(),
        path: show(&absolute),
        result: Err(SpaceError::bad_path(absolute, problem).fault()),
    }
}
