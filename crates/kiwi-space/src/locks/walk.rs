//! Going through the folders of the store: names and times, no file is opened.

use jiff::Timestamp;
use kiwi_model::lockfile::LockName;
use rustix::fs::{AtFlags, Dir, FileType, statat};
use rustix::io::Errno;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;

use super::folder::explain;
use super::place::{TEMPORARY, inside, is_part, join, key_of, may_nest};
use super::time;
use crate::error::SpaceError;
use crate::root::Root;

/// A file whose name is that of a lockfile.
pub(super) struct Found {
    pub(super) key: String,
    pub(super) name: LockName,
    /// When it was modified; not known of a symlink, whose target has to be opened for that, nor of a folder in its place.
    pub(super) modified: Option<Timestamp>,
}

/// What lies in the store.
#[derive(Default)]
pub(super) struct Walked {
    pub(super) found: Vec<Found>,
    /// What writers left behind that were killed.
    pub(super) leftovers: Vec<String>,
}

/// One file on the way.
struct Seen<'a> {
    folder: &'a OwnedFd,
    category: &'a str,
    file: &'a str,
    kind: FileType,
}

/// Everything in the store.
pub(super) fn walk(root: &Root) -> Result<Walked, SpaceError> {
    let mut walked = Walked::default();
    let _ = visit(root, &mut |seen| {
        if seen.file.starts_with(TEMPORARY) {
            walked.leftovers.push(join(seen.category, seen.file));
        } else if let Some(name) = LockName::parse(seen.file) {
            let modified = if seen.kind == FileType::RegularFile {
                match statat(seen.folder, seen.file, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => Some(time::modified(&stat)),
                    // Gone since it was seen.
                    Err(_) => return ControlFlow::Continue(()),
                }
            } else {
                None
            };
            walked.found.push(Found { key: key_of(seen.category, &name), name, modified });
        }
        ControlFlow::Continue(())
    })?;
    Ok(walked)
}

/// The names in one folder of the store; none where it cannot be looked into.
pub(super) fn names(root: &Root, category: &str) -> impl Iterator<Item = String> + use<> {
    let folder = root.open_plain_folder(&inside(category)).ok();
    let entries = folder.and_then(|folder| Dir::read_from(&folder).ok()).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned))
}

/// Whether there is one lockfile; stops at the first.
pub(super) fn has_any(root: &Root) -> bool {
    let found = visit(root, &mut |seen| match LockName::parse(seen.file) {
        Some(_) => ControlFlow::Break(()),
        None => ControlFlow::Continue(()),
    });
    found.map_or(true, |flow| flow.is_break())
}

/// Visits files, symlinks to whatever, and folders with the name of a lockfile. Symlinked folders are not entered, so
/// that the tree has an end.
fn visit(
    root: &Root,
    each: &mut dyn FnMut(Seen<'_>) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, SpaceError> {
    let mut pending = vec![String::new()];
    while let Some(category) = pending.pop() {
        let relative = inside(&category);
        let unreadable = |error: Errno| SpaceError::unreadable(root.absolute(&relative), error);
        let folder = match root.open_plain_folder(&relative) {
            Ok(folder) => folder,
            Err(Errno::NOENT) => continue,
            // Replaced since it was seen.
            Err(Errno::LOOP | Errno::NOTDIR) if !category.is_empty() => continue,
            Err(error) => return Err(explain(root, &relative, error)),
        };
        for entry in Dir::read_from(&folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let Ok(file) = entry.file_name().to_str() else { continue };
            let kind = match entry.file_type() {
                FileType::Unknown => statat(&folder, file, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
                kind => kind,
            };
            // A folder with the name of a lockfile is a lockfile that cannot be read.
            let is_category = kind == FileType::Directory && LockName::parse(file).is_none();
            match kind {
                FileType::Directory if is_category && is_part(file) && may_nest(&category) => {
                    pending.push(join(&category, file));
                }
                FileType::RegularFile | FileType::Symlink | FileType::Directory
                    if !is_category
                        && each(Seen { folder: &folder, category: &category, file, kind }).is_break() =>
                {
                    return Ok(ControlFlow::Break(()));
                }
                _ => {}
            }
        }
    }
    Ok(ControlFlow::Continue(()))
}
