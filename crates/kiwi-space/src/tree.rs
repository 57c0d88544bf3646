//! Walking through the folder of a tool. Symlinks that stay inside the space are followed.

use rustix::fs::{Dir, FileType};
use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt as _;

use crate::error::{PathProblem, SpaceError, show};
use crate::gather::{MAX_FILES, SIGNATURE};
use crate::root::{Entry, Root};
use crate::stamp::Stamp;

const MAX_DEPTH: usize = 64;

/// Something that lies in the folder of a tool.
pub(crate) struct Met<'a> {
    /// The folder around it, open.
    pub(crate) folder: BorrowedFd<'a>,
    /// Its name there.
    pub(crate) name: &'a str,
    /// Its path from the tool's folder.
    pub(crate) path: &'a str,
    /// What it is, through symlinks; unknown for what a tool cannot hold.
    pub(crate) kind: FileType,
    /// Whether it is reached through a symlink of its own.
    pub(crate) is_link: bool,
}

/// A folder still to be looked through, and the folders around it.
struct Pending {
    path: String,
    around: Vec<(i64, i64)>,
}

/// Shows everything below a folder, until something is met that no tool may hold.
pub(crate) fn walk(root: &Root, folder: &str, see: &mut dyn FnMut(&Met<'_>)) -> Result<(), SpaceError> {
    let too_large =
        |what| SpaceError::TooLarge { path: show(&root.absolute(folder)), what, limit: MAX_FILES as u64 };
    let (mut files, mut folders) = (0, 0);
    let mut pending = vec![Pending { path: String::new(), around: Vec::new() }];
    while let Some(Pending { path: inside, mut around }) = pending.pop() {
        let relative = if inside.is_empty() { folder.to_owned() } else { format!("{folder}/{inside}") };
        let fd = root.open_folder(&relative)?;
        let unreadable = |error| SpaceError::unreadable(root.absolute(&relative), error);
        let stamp = Stamp::of_folder(&rustix::fs::fstat(&fd).map_err(unreadable)?);
        folders += 1;
        if folders > MAX_FILES {
            return Err(too_large("folders"));
        }
        if around.len() >= MAX_DEPTH {
            return Err(SpaceError::bad_path(root.absolute(&relative), PathProblem::TooDeep));
        }
        if around.contains(&(stamp.device, stamp.inode)) {
            return Err(SpaceError::bad_path(root.absolute(&relative), PathProblem::Loop));
        }
        around.push((stamp.device, stamp.inode));
        let mut entries = Dir::new(fd).map_err(unreadable)?;
        while let Some(entry) = entries.read() {
            let entry = entry.map_err(unreadable)?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let Ok(name) = std::str::from_utf8(name) else {
                let path = root.absolute(&relative).join(OsStr::from_bytes(name));
                return Err(SpaceError::bad_path(path, PathProblem::NotUtf8));
            };
            let path = if inside.is_empty() { name.to_owned() } else { format!("{inside}/{name}") };
            if path == SIGNATURE {
                continue;
            }
            let told = entry.file_type();
            let kind = match told {
                FileType::Symlink | FileType::Unknown => kind_of(root, &format!("{relative}/{name}")),
                kind => Ok(kind),
            };
            see(&Met {
                folder: entries.fd().map_err(unreadable)?,
                name,
                path: &path,
                kind: kind.as_ref().map_or(FileType::Unknown, |kind| *kind),
                is_link: matches!(told, FileType::Symlink | FileType::Unknown),
            });
            match kind? {
                FileType::RegularFile => files += 1,
                FileType::Directory => pending.push(Pending { path, around: around.clone() }),
                _ => {
                    let path = root.absolute(&format!("{relative}/{name}"));
                    return Err(SpaceError::bad_path(path, PathProblem::SpecialFile));
                }
            }
            if files > MAX_FILES {
                return Err(too_large("files"));
            }
        }
    }
    Ok(())
}

fn kind_of(root: &Root, relative: &str) -> Result<FileType, SpaceError> {
    Ok(match root.open_entry(relative)? {
        Entry::File(_) => FileType::RegularFile,
        Entry::Folder => FileType::Directory,
    })
}
