//! How to tell that a file is still as it was read.

use std::path::Path;

use crate::error::SpaceError;
use crate::stamp::{Stamp, now};

/// A file as it stood at one moment, taken just before it was read.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// `None` where there was none.
    stamp: Option<Stamp>,
    /// Whether any later change must show in the stamp.
    is_settled: bool,
}

impl Seen {
    /// Looks at a file, through symlinks.
    pub fn of(path: &Path) -> Result<Self, SpaceError> {
        let begun = now();
        let stamp = stamp(path)?;
        Ok(Self { stamp, is_settled: stamp.is_none_or(|stamp| stamp.is_settled(begun)) })
    }

    /// Whether the file is certainly still the same; where that cannot be told, it is not.
    pub fn is_still(&self, path: &Path) -> bool {
        self.is_settled && stamp(path).is_ok_and(|now| now == self.stamp)
    }

    /// Whether there was a file.
    pub fn is_there(&self) -> bool {
        self.stamp.is_some()
    }
}

fn stamp(path: &Path) -> Result<Option<Stamp>, SpaceError> {
    match rustix::fs::stat(path) {
        Ok(stat) => Ok(Some(Stamp::of_file(&stat))),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => Ok(None),
        Err(error) => Err(SpaceError::unreadable(path, error)),
    }
}
