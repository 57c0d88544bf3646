//! The folders of the store, opened so that no symlink is followed on the way.

use rustix::fs::{FileType, Mode, fsync, mkdirat};
use rustix::io::Errno;
use std::os::fd::OwnedFd;

use super::place::{inside, split};
use crate::boundary;
use crate::error::{PathProblem, SpaceError};
use crate::root::Root;

/// Opens a category's folder, reached through no symlink.
pub(super) fn open_folder(root: &Root, category: &str) -> Result<OwnedFd, SpaceError> {
    let relative = inside(category);
    root.open_plain_folder(&relative).map_err(|error| explain(root, &relative, error))
}

/// Why a folder cannot be opened.
pub(super) fn explain(root: &Root, relative: &str, error: Errno) -> SpaceError {
    let path = root.absolute(relative);
    let is_link =
        || root.stat(relative).is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink);
    match error {
        Errno::LOOP => SpaceError::bad_path(path, PathProblem::Symlink),
        Errno::NOTDIR if is_link() => SpaceError::bad_path(path, PathProblem::Symlink),
        Errno::NOTDIR => SpaceError::bad_path(path, PathProblem::NotFolder),
        error => SpaceError::unreadable(path, error),
    }
}

/// Opens a category's folder, and makes it and those around it where they are missing.
pub(super) fn make_folder(root: &Root, category: &str) -> Result<OwnedFd, SpaceError> {
    if root.stat(&inside(category)).is_some() {
        return open_folder(root, category);
    }
    let unwritable = |error: Errno| SpaceError::unwritable(root.absolute(&inside(category)), error);
    if category.is_empty() {
        match mkdirat(root.fd(), inside(""), Mode::from(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {
                boundary::pass();
                return open_folder(root, "");
            }
            Err(error) => return Err(unwritable(error)),
        }
    }
    let (parent, name) = split(category);
    let parent = make_folder(root, parent)?;
    match mkdirat(&parent, name, Mode::from(0o755)) {
        Ok(()) => {
            boundary::pass();
            fsync(&parent).map_err(unwritable)?;
        }
        Err(Errno::EXIST) => {}
        Err(error) => return Err(unwritable(error)),
    }
    open_folder(root, category)
}
