//! How often each cache helped, for `kiwi doctor --json`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// One number that is counted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Counter {
    /// A tool whose bytes were known: no parsing.
    ToolHits,
    /// A tool that had to be parsed.
    ToolMisses,
    /// A large file whose digest was known.
    LargeFileHits,
    /// A large file that was hashed.
    LargeFileMisses,
    /// A lookup that found every folder unchanged.
    IndexHits,
    /// A lookup for which something had to be read again.
    IndexMisses,
    /// Folders that were read again.
    IndexFolders,
    /// Indexes that were unusable and built from nothing.
    IndexRebuilds,
    /// A package record whose bytes were known.
    RecordHits,
    /// A package record that had to be parsed.
    RecordMisses,
}

impl Counter {
    const ALL: [(Self, &'static str); 10] = [
        (Self::ToolHits, "tool_hits"),
        (Self::ToolMisses, "tool_misses"),
        (Self::LargeFileHits, "large_file_hits"),
        (Self::LargeFileMisses, "large_file_misses"),
        (Self::IndexHits, "index_hits"),
        (Self::IndexMisses, "index_misses"),
        (Self::IndexFolders, "index_folders_read"),
        (Self::IndexRebuilds, "index_rebuilds"),
        (Self::RecordHits, "record_hits"),
        (Self::RecordMisses, "record_misses"),
    ];
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Counters([AtomicU64; Counter::ALL.len()]);

impl Counters {
    pub(crate) fn add(&self, counter: Counter) {
        if let Some(number) = self.0.get(counter as usize) {
            number.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn all(&self) -> BTreeMap<&'static str, u64> {
        let read = |counter: Counter| {
            self.0.get(counter as usize).map_or(0, |number| number.load(Ordering::Relaxed))
        };
        Counter::ALL.iter().map(|(counter, name)| (*name, read(*counter))).collect()
    }
}
