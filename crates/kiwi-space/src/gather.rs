//! All files of a tool's folder: found, read and hashed.

use kiwi_model::File;
use rustix::fs::FileType;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::counters::Counters;
use crate::error::SpaceError;
use crate::kind::MANIFEST;
use crate::root::{Root, length};
use crate::take::{KEEP_BYTES, Keep, LargeFiles, take};
use crate::tree;

/// A tool may have this many files.
pub(crate) const MAX_FILES: usize = 20_000;
/// A tool may have this many bytes.
pub(crate) const MAX_BYTES: u64 = 1 << 30;
/// Of one tool this many bytes are kept in memory.
const KEEP_TOTAL: u64 = 32 << 20;
/// Files above this are hashed beside each other.
const LARGE: u64 = 1 << 20;
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
        tree::walk(self.root, folder, &mut |met| {
            if met.kind == FileType::RegularFile {
                paths.push(met.path.to_owned());
            }
        })?;
        Ok(paths)
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
        // To find out how many cores there are takes longer than most tools take to read.
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = if large.len() > 1 { cores().min(large.len()) } else { 1 };
        if threads == 1 {
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
