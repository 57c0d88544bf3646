//! All files of a tool's folder: found, read and hashed.

use kiwi_model::File;
use rustix::fs::{Dir, FileType};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::counters::Counters;
use crate::error::{PathProblem, SpaceError};
use crate::kind::MANIFEST;
use crate::root::{Entry, Root, length};
use crate::stamp::Stamp;
use crate::take::{KEEP_BYTES, Keep, LargeFiles, take};

/// A tool may have this many files.
pub(crate) const MAX_FILES: usize = 20_000;
/// A tool may have this many bytes.
pub(crate) const MAX_BYTES: u64 = 1 << 30;
/// Of one tool this many bytes are kept in memory.
const KEEP_TOTAL: u64 = 32 << 20;
/// Files above this are hashed beside each other.
const LARGE: u64 = 1 << 20;
const MAX_DEPTH: usize = 64;
/// The detached signature: made over the integrity, so it cannot be part of it.
pub(crate) const SIGNATURE: &str = "kiwi.sig";

/// Reads files of one space.
#[derive(Clone, Copy)]
pub(crate) struct Gatherer<'a> {
    pub(crate) root: &'a Root,
    pub(crate) large: &'a LargeFiles,
    pub(crate) counters: &'a Counters,
}

/// A file that was found: its path inside the package.
struct Found {
    path: String,
    size: u64,
    keep: Keep,
}

/// A folder still to be looked through, and the folders around it.
struct Pending {
    path: String,
    around: Vec<(i64, i64)>,
}

impl Gatherer<'_> {
    /// Reads one file; `path` is what it is called inside the package.
    pub(crate) fn file(&self, relative: &str, path: String) -> Result<File, SpaceError> {
        let opened = self.root.open_file(relative)?;
        if length(&opened.stat) > MAX_BYTES {
            return Err(self.too_large(relative, "bytes", MAX_BYTES));
        }
        take(self, relative, path, opened, Keep::Yes)
    }

    /// Reads every file below a folder, by path.
    pub(crate) fn folder(&self, folder: &str) -> Result<Vec<File>, SpaceError> {
        let mut paths = self.walk(folder)?;
        paths.sort_unstable();
        let mut files = Vec::with_capacity(paths.len());
        let mut large = Vec::new();
        let (mut total, mut kept) = (0, 0);
        for path in paths {
            let relative = format!("{folder}/{path}");
            let opened = self.root.open_file(&relative)?;
            let size = length(&opened.stat);
            total += size;
            if total > MAX_BYTES {
                return Err(self.too_large(folder, "bytes", MAX_BYTES));
            }
            // The manifest is always needed, however much stands before it in the alphabet.
            let keep = path == MANIFEST || (size <= KEEP_BYTES && kept + size <= KEEP_TOTAL);
            kept += if keep { size } else { 0 };
            let keep = if keep { Keep::Yes } else { Keep::No };
            if size > LARGE {
                large.push(Found { path, size, keep });
            } else {
                files.push(take(self, &relative, path, opened, keep)?);
            }
        }
        files.extend(self.beside_each_other(folder, large)?);
        files.sort_unstable_by(|a, b| a.entry.path.cmp(&b.entry.path));
        Ok(files)
    }

    /// The paths of all files below a folder. Symlinks that stay inside the space are followed.
    pub(crate) fn walk(&self, folder: &str) -> Result<Vec<String>, SpaceError> {
        let mut paths = Vec::new();
        let mut folders = 0;
        let mut pending = vec![Pending { path: String::new(), around: Vec::new() }];
        while let Some(Pending { path: inside, mut around }) = pending.pop() {
            let relative = if inside.is_empty() { folder.to_owned() } else { format!("{folder}/{inside}") };
            let fd = self.root.open_folder(&relative)?;
            let unreadable = |error| SpaceError::unreadable(self.root.absolute(&relative), error);
            let stamp = Stamp::of_folder(&rustix::fs::fstat(&fd).map_err(unreadable)?);
            folders += 1;
            if folders > MAX_FILES {
                return Err(self.too_large(folder, "folders", MAX_FILES as u64));
            }
            if around.len() >= MAX_DEPTH {
                return Err(SpaceError::bad_path(self.root.absolute(&relative), PathProblem::TooDeep));
            }
            if around.contains(&(stamp.device, stamp.inode)) {
                return Err(SpaceError::bad_path(self.root.absolute(&relative), PathProblem::Loop));
            }
            around.push((stamp.device, stamp.inode));
            for entry in Dir::new(fd).map_err(unreadable)? {
                let entry = entry.map_err(unreadable)?;
                let name = entry.file_name().to_bytes();
                if name == b"." || name == b".." {
                    continue;
                }
                let Ok(name) = std::str::from_utf8(name) else {
                    let path =
                        self.root.absolute(&relative).join(Path::new(std::ffi::OsStr::from_bytes(name)));
                    return Err(SpaceError::bad_path(path, PathProblem::NotUtf8));
                };
                let path = if inside.is_empty() { name.to_owned() } else { format!("{inside}/{name}") };
                if path == SIGNATURE {
                    continue;
                }
                let kind = match entry.file_type() {
                    FileType::Symlink | FileType::Unknown => self.kind(&format!("{relative}/{name}"))?,
                    kind => kind,
                };
                match kind {
                    FileType::RegularFile => paths.push(path),
                    FileType::Directory => pending.push(Pending { path, around: around.clone() }),
                    _ => {
                        let path = self.root.absolute(&format!("{relative}/{name}"));
                        return Err(SpaceError::bad_path(path, PathProblem::SpecialFile));
                    }
                }
                if paths.len() > MAX_FILES {
                    return Err(self.too_large(folder, "files", MAX_FILES as u64));
                }
            }
        }
        Ok(paths)
    }

    fn kind(&self, relative: &str) -> Result<FileType, SpaceError> {
        Ok(match self.root.open_entry(relative)? {
            Entry::File(_) => FileType::RegularFile,
            Entry::Folder => FileType::Directory,
        })
    }

    /// Hashes large files on as many threads as there are cores.
    fn beside_each_other(&self, folder: &str, mut large: Vec<Found>) -> Result<Vec<File>, SpaceError> {
        // The longest first, so that no thread is left alone with it at the end.
        large.sort_by_key(|found| std::cmp::Reverse(found.size));
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            while let Some(found) = large.get(next.fetch_add(1, Ordering::Relaxed)) {
                let relative = format!("{folder}/{}", found.path);
                let opened = self.root.open_file(&relative)?;
                done.push(take(self, &relative, found.path.clone(), opened, found.keep)?);
            }
            Ok(done)
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(large.len());
        if threads <= 1 {
            return work();
        }
        std::thread::scope(|scope| {
            // Where no thread can be had, fewer do the same work.
            let spawn = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
            let workers: Vec<_> = (1..threads).filter_map(spawn).collect();
            let mut files: Vec<File> = work()?;
            for worker in workers {
                match worker.join() {
                    Ok(done) => files.extend(done?),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Ok(files)
        })
    }

    fn too_large(&self, relative: &str, what: &'static str, limit: u64) -> SpaceError {
        SpaceError::TooLarge { path: crate::error::show(&self.root.absolute(relative)), what, limit }
    }
}
