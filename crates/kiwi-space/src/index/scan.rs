//! Reading category folders: which names in them are tools, which are further categories.

use kiwi_model::ToolId;
use rustix::fs::{AtFlags, Dir, DirEntry, FileType, statat};
use rustix::io::Errno;
use std::collections::{HashMap, HashSet};
use std::ffi::{CString, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::{Closed, Row, Snapshot, Spot};
use crate::counters::{Counter, Counters};
use crate::error::{PathProblem, SpaceError};
use crate::kind::{Kind, LIB, MANIFEST, TREES};
use crate::root::Root;
use crate::stamp::{self, Stamp};

const MAX_DEPTH: usize = 32;

/// What a scan found.
pub(super) struct Scanned {
    pub(super) rows: Vec<Row>,
    pub(super) spots: Vec<Spot>,
    /// Names that look like tools and cannot be one.
    pub(super) odd: Vec<Odd>,
    /// Folders that cannot be looked into.
    pub(super) closed: Vec<Closed>,
}

/// Something among the tools that cannot be one.
pub(crate) struct Odd {
    pub(crate) path: PathBuf,
    pub(crate) problem: PathProblem,
}

/// What is known from before, per folder.
struct Known<'a> {
    row: &'a Row,
    spots: Vec<&'a Spot>,
    children: Vec<&'a str>,
}

struct Scan<'a> {
    root: &'a Root,
    counters: &'a Counters,
    known: HashMap<&'a str, Known<'a>>,
    found: Scanned,
}

/// A folder to look at, and the row of the folder around it.
struct Pending {
    path: String,
    parent: Option<u32>,
}

/// Reads every category folder that changed since `before`; all of them without one.
pub(super) fn scan(
    root: &Root,
    before: Option<(&Snapshot, &[Spot])>,
    counters: &Counters,
) -> Result<Scanned, SpaceError> {
    let mut known: HashMap<&str, Known<'_>> = HashMap::new();
    if let Some((snapshot, spots)) = before {
        known = snapshot
            .rows
            .iter()
            .map(|row| (row.path.as_str(), Known { row, spots: Vec::new(), children: Vec::new() }))
            .collect();
        for row in &snapshot.rows {
            if let Some(parent) = row.path.rsplit_once('/').and_then(|(parent, _)| known.get_mut(parent)) {
                parent.children.push(&row.path);
            }
        }
        for spot in spots {
            let folder =
                snapshot.rows.get(spot.folder as usize).and_then(|row| known.get_mut(row.path.as_str()));
            if let Some(folder) = folder {
                folder.spots.push(spot);
            }
        }
    }
    let found = Scanned { rows: Vec::new(), spots: Vec::new(), odd: Vec::new(), closed: Vec::new() };
    let mut scan = Scan { root, counters, known, found };
    let mut pending: Vec<Pending> =
        TREES.iter().map(|tree| Pending { path: (*tree).to_owned(), parent: None }).collect();
    while let Some(next) = pending.pop() {
        scan.folder(next, &mut pending)?;
    }
    scan.found.spots.sort_unstable();
    Ok(scan.found)
}

/// The names in a folder, and what they are as far as the folder tells.
fn names(folder: &OwnedFd) -> Result<Vec<(CString, FileType)>, Errno> {
    let entry = |entry: Result<DirEntry, Errno>| entry.map(|it| (it.file_name().to_owned(), it.file_type()));
    Dir::read_from(folder)?.map(entry).collect()
}

impl Scan<'_> {
    fn folder(
        &mut self,
        Pending { path, parent }: Pending,
        pending: &mut Vec<Pending>,
    ) -> Result<(), SpaceError> {
        let now = stamp::now();
        let stat = self.root.stat(&path);
        let kind = stat.as_ref().map(|stat| FileType::from_raw_mode(stat.st_mode));
        let stamp = stat.as_ref().filter(|_| kind == Some(FileType::Directory)).map(Stamp::of_folder);
        let Some(stamp) = stamp else {
            if parent.is_none() {
                if kind.is_some() {
                    self.odd(&path, b"", PathProblem::NotFolder);
                }
                self.row(path, None, true)?;
            }
            return Ok(());
        };
        if path.split('/').count() > MAX_DEPTH {
            self.odd(&path, b"", PathProblem::TooDeep);
            return Ok(());
        }
        if let Some(known) = self.known.get(path.as_str()).filter(|known| known.row.is_current(Some(&stamp)))
        {
            let children: Vec<String> = known.children.iter().map(|child| (*child).to_owned()).collect();
            // A folder with a row of its own could not be read before; whether it is a tool is found out below.
            let is_open = |spot: &Spot| {
                spot.kind == Kind::Folder && self.known.contains_key(format!("{path}/{}", spot.id).as_str())
            };
            let spots: Vec<Spot> =
                known.spots.iter().filter(|spot| !is_open(spot)).map(|spot| (*spot).clone()).collect();
            let row = self.row(path, Some(stamp), true)?;
            self.found.spots.extend(spots.into_iter().map(|spot| Spot { folder: row, ..spot }));
            pending.extend(children.into_iter().map(|path| Pending { path, parent: Some(row) }));
            return Ok(());
        }
        self.read(path, parent, stamp, stamp.is_settled(now), pending)
    }

    fn read(
        &mut self,
        path: String,
        parent: Option<u32>,
        stamp: Stamp,
        settled: bool,
        pending: &mut Vec<Pending>,
    ) -> Result<(), SpaceError> {
        self.counters.add(Counter::IndexFolders);
        let fd = match self.root.open_plain_folder(&path) {
            Ok(fd) => fd,
            // Gone, or replaced, since it was seen; that shows in the stamp of the folder around it.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                return if parent.is_some() { Ok(()) } else { self.row(path, None, false).map(|_| ()) };
            }
            Err(error) => return self.closed(path, parent, stamp, error),
        };
        let names = match names(&fd) {
            Ok(names) => names,
            Err(error) => return self.closed(path, parent, stamp, error),
        };
        if let Some(parent) = parent
            && names.iter().any(|(name, _)| name.to_bytes() == MANIFEST.as_bytes())
        {
            // It became a tool since the folder around it was read.
            self.tool_folder(&path, parent);
            return Ok(());
        }
        let was_tool: HashSet<String> = self.known.get(path.as_str()).map_or_else(HashSet::new, |known| {
            let folders = known.spots.iter().filter(|spot| spot.kind == Kind::Folder);
            folders.map(|spot| spot.id.as_str().to_owned()).collect()
        });
        let row = self.row(path.clone(), Some(stamp), settled)?;
        for (name, kind) in names {
            let bytes = name.to_bytes();
            if matches!(bytes.first(), None | Some(b'.' | b'_')) {
                continue;
            }
            let Ok(name) = std::str::from_utf8(bytes) else {
                self.odd(&path, bytes, PathProblem::NotUtf8);
                continue;
            };
            let kind = match kind {
                FileType::Unknown => statat(&fd, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(kind, |stat| FileType::from_raw_mode(stat.st_mode)),
                kind => kind,
            };
            match kind {
                FileType::Directory if name == "node_modules" || (parent.is_none() && name == LIB) => {}
                FileType::Directory => {
                    let inner = format!("{path}/{name}");
                    let is_tool = (was_tool.contains(name) && !self.known.contains_key(inner.as_str()))
                        || statat(&fd, format!("{name}/{MANIFEST}"), AtFlags::SYMLINK_NOFOLLOW).is_ok();
                    if is_tool {
                        self.tool_folder(&inner, row);
                    } else {
                        pending.push(Pending { path: inner, parent: Some(row) });
                    }
                }
                FileType::Symlink if Kind::of_file(name).is_none() => {
                    let leads_to =
                        statat(&fd, name, AtFlags::empty()).map(|stat| FileType::from_raw_mode(stat.st_mode));
                    if leads_to == Ok(FileType::Directory) {
                        self.linked_folder(&path, name, row);
                    }
                }
                _ => self.file(&path, name, row),
            }
        }
        Ok(())
    }

    fn file(&mut self, folder: &str, name: &str, row: u32) {
        let Some((stem, kind)) = Kind::of_file(name) else { return };
        match ToolId::parse(stem) {
            Ok(id) => self.found.spots.push(Spot { id, folder: row, kind }),
            Err(_) => self.odd(folder, name.as_bytes(), PathProblem::NotAnId),
        }
    }

    fn tool_folder(&mut self, path: &str, row: u32) {
        match ToolId::parse(path.rsplit('/').next().unwrap_or_default()) {
            Ok(id) => self.found.spots.push(Spot { id, folder: row, kind: Kind::Folder }),
            Err(_) => self.odd(path, b"", PathProblem::NotAnId),
        }
    }

    /// A folder that cannot be looked into. Perhaps it is a tool: then this says so to whoever asks for it, and to listings.
    /// Those that are found elsewhere are not held up, unless nothing can be found at all.
    fn closed(
        &mut self,
        path: String,
        parent: Option<u32>,
        stamp: Stamp,
        error: Errno,
    ) -> Result<(), SpaceError> {
        let Some(folder) = parent else {
            return Err(SpaceError::unreadable(self.root.absolute(&path), error));
        };
        self.row(path.clone(), Some(stamp), false)?;
        match ToolId::parse(path.rsplit('/').next().unwrap_or_default()) {
            Ok(id) => self.found.spots.push(Spot { id, folder, kind: Kind::Folder }),
            Err(_) => self.odd(&path, b"", PathProblem::Unreadable),
        }
        self.found.closed.push(Closed { path, error });
        Ok(())
    }

    /// A symlinked folder is a tool if it holds a manifest, which is looked at when it is loaded; it is never a category,
    /// so that links cannot make the tree endless.
    fn linked_folder(&mut self, folder: &str, name: &str, row: u32) {
        match ToolId::parse(name) {
            Ok(id) => self.found.spots.push(Spot { id, folder: row, kind: Kind::Folder }),
            Err(_) => self.odd(folder, name.as_bytes(), PathProblem::LinkedCategory),
        }
    }

    fn row(&mut self, path: String, stamp: Option<Stamp>, settled: bool) -> Result<u32, SpaceError> {
        let number = u32::try_from(self.found.rows.len())
            .map_err(|_| SpaceError::bad_path(self.root.absolute(&path), PathProblem::TooDeep))?;
        self.found.rows.push(Row { path, stamp, settled });
        Ok(number)
    }

    fn odd(&mut self, folder: &str, name: &[u8], problem: PathProblem) {
        let mut path = self.root.absolute(folder);
        if !name.is_empty() {
            path.push(OsStr::from_bytes(name));
        }
        self.found.odd.push(Odd { path, problem });
    }
}
