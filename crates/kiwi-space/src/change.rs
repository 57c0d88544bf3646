//! The difference between the files that are there and the files that were recorded.

use kiwi_model::{Digest, FileEntry};
use std::cmp::Ordering;

/// How a file differs from what was recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Change {
    /// Other bytes.
    #[error("file `{path}` was changed: computed {computed}, expected {expected}")]
    Bytes {
        /// Path inside the package.
        path: String,
        /// What is there.
        computed: Digest,
        /// What was recorded.
        expected: Digest,
    },
    /// The executable bit.
    #[error("file `{path}` was changed: its executable bit is {}", if *.is_executable { "now set" } else { "no longer set" })]
    Mode {
        /// Path inside the package.
        path: String,
        /// What it is now.
        is_executable: bool,
    },
    /// Not recorded.
    #[error("file `{path}` was added")]
    Added {
        /// Path inside the package.
        path: String,
    },
    /// Recorded and gone.
    #[error("file `{path}` is missing")]
    Missing {
        /// Path inside the package.
        path: String,
    },
    /// Something that cannot be read as a file of a package.
    #[error("{why}")]
    Refused {
        /// Why.
        why: String,
    },
}

impl Change {
    /// The first difference between what is there and what was recorded, by path.
    pub fn first(found: &[FileEntry], recorded: &[FileEntry]) -> Option<Self> {
        let sorted = |entries: &[FileEntry]| {
            let mut entries: Vec<FileEntry> = entries.to_vec();
            entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
            entries
        };
        let (found, recorded) = (sorted(found), sorted(recorded));
        let (mut found, mut recorded) = (found.into_iter().peekable(), recorded.into_iter().peekable());
        loop {
            let order = match (found.peek(), recorded.peek()) {
                (None, None) => return None,
                (Some(a), Some(b)) => a.path.cmp(&b.path),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
            };
            match order {
                Ordering::Less => return found.next().map(|entry| Self::Added { path: entry.path }),
                Ordering::Greater => return recorded.next().map(|entry| Self::Missing { path: entry.path }),
                Ordering::Equal => {
                    let (a, b) = found.next().zip(recorded.next())?;
                    if a.sha256 != b.sha256 {
                        return Some(Self::Bytes { path: a.path, computed: a.sha256, expected: b.sha256 });
                    }
                    if a.is_executable != b.is_executable {
                        return Some(Self::Mode { path: a.path, is_executable: a.is_executable });
                    }
                }
            }
        }
    }

    /// The file, where one can be named.
    pub(crate) fn path(&self) -> Option<&str> {
        match self {
            Self::Bytes { path, .. }
            | Self::Mode { path, .. }
            | Self::Added { path }
            | Self::Missing { path } => Some(path),
            Self::Refused { .. } => None,
        }
    }
}
