//! Reading one file: once, through one descriptor, hashing exactly the bytes that are kept.

use kiwi_chain::Cache;
use kiwi_model::{Content, Digest, File, FileEntry, Hasher};
use std::io::{self, Read};
use std::sync::Arc;

use crate::counters::{Counter, Counters};
use crate::error::SpaceError;
use crate::gather::{Gatherer, MAX_BYTES};
use crate::root::{Opened, is_executable, length};
use crate::stamp::{self, Stamp};

/// A file up to this size is kept in memory.
pub(crate) const KEEP_BYTES: u64 = 4 << 20;
/// Large enough that system calls do not show beside the hashing.
const BUFFER: usize = 1 << 20;
/// Digests of large files that are remembered.
const REMEMBERED: usize = 4096;

/// Digests of large files, by what tells that a file was touched.
pub(crate) struct LargeFiles {
    known: Cache<Stamp, Digest>,
}

/// Whether the bytes of a file should stay in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    Yes,
    No,
}

impl LargeFiles {
    pub(crate) fn new() -> Self {
        Self { known: Cache::new(REMEMBERED) }
    }
}

/// Reads a file whole. `path` is its path inside the package, `relative` the one inside the space.
pub(crate) fn take(
    with: &Gatherer<'_>,
    relative: &str,
    path: String,
    opened: Opened,
    keep: Keep,
) -> Result<File, SpaceError> {
    let Gatherer { root, large, counters } = *with;
    let is_executable = is_executable(&opened.stat);
    let unreadable = |error| SpaceError::unreadable(root.absolute(relative), error);
    let (sha256, bytes) = if keep == Keep::Yes && length(&opened.stat) <= KEEP_BYTES {
        take_small(opened).map_err(unreadable)?
    } else {
        (take_large(opened, large, counters).map_err(unreadable)?, None)
    };
    let content = bytes.map_or_else(|| Content::OnDisk(root.absolute(relative)), Content::Bytes);
    Ok(File { entry: FileEntry { path, sha256, is_executable }, content })
}

fn take_small(mut opened: Opened) -> io::Result<(Digest, Option<Arc<[u8]>>)> {
    let size = length(&opened.stat);
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
    (&mut opened.file).take(KEEP_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 <= KEEP_BYTES {
        return Ok((Digest::of(&bytes), Some(bytes.into())));
    }
    // It grew past the limit while it was read: go on where this stopped.
    let mut hasher = Hasher::default();
    hasher.update(&bytes);
    stream(&mut opened.file, &mut hasher)?;
    Ok((hasher.finish(), None))
}

fn take_large(mut opened: Opened, large: &LargeFiles, counters: &Counters) -> io::Result<Digest> {
    let now = stamp::now();
    let before = Stamp::of_file(&opened.stat);
    let is_large = length(&opened.stat) > KEEP_BYTES;
    if is_large && let Some(digest) = large.known.get(&before) {
        counters.add(Counter::LargeFileHits);
        return Ok(digest);
    }
    let mut hasher = Hasher::default();
    stream(&mut opened.file, &mut hasher)?;
    let digest = hasher.finish();
    if is_large {
        counters.add(Counter::LargeFileMisses);
        let after = Stamp::of_file(&rustix::fs::fstat(&opened.file)?);
        if after == before && before.is_settled(now) {
            large.known.insert(before, digest);
        }
    }
    Ok(digest)
}

fn stream(file: &mut std::fs::File, hasher: &mut Hasher) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    let mut total = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(()),
            // Somebody may be writing faster than this reads.
            Ok(_) if total > MAX_BYTES => return Err(io::ErrorKind::FileTooLarge.into()),
            Ok(count) => {
                total += count as u64;
                hasher.update(buffer.get(..count).unwrap_or_default());
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
