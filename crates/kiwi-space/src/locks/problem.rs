//! What can be wrong with a lockfile that is there.

use kiwi_model::lockfile::LockfileError;
use kiwi_model::{ErrorKind, Explain};

use crate::error::{PathProblem, SpaceError, plain};

/// Why a lockfile cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LockProblem {
    /// Its text is not a lockfile, or not one that can be trusted.
    #[error(transparent)]
    Content(#[from] LockfileError),
    /// It is a lockfile, but not the one its name and folder promise.
    #[error("is for {holds}, and its name and folder say {says}")]
    Misplaced {
        /// What its text is for.
        holds: String,
        /// What its name and folder are for.
        says: String,
    },
    /// A folder lies where the file should.
    #[error("is a folder, not a file")]
    Folder,
    /// It cannot be opened or read.
    #[error("{0}")]
    Unreachable(String),
}

impl LockProblem {
    /// Whether nothing may be written over it: what a newer Kiwi wrote, and what is no file at all.
    pub fn must_stay(&self) -> bool {
        matches!(self, Self::Content(LockfileError::Newer(_)) | Self::Folder)
    }

    /// Whether it is somebody's unfinished merge.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self, Self::Content(LockfileError::Conflict { .. }))
    }
}

impl From<SpaceError> for LockProblem {
    fn from(error: SpaceError) -> Self {
        Self::Unreachable(match error {
            SpaceError::Unreadable { source, .. } => format!("cannot be read: {}", plain(&source)),
            SpaceError::BadPath { problem: PathProblem::Folder, .. } => return Self::Folder,
            SpaceError::BadPath { problem, .. } => problem.to_string(),
            other => other.to_string(),
        })
    }
}

impl Explain for LockProblem {
    fn kind(&self) -> ErrorKind {
        ErrorKind::LockfileMismatch
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Content(error) => error.hint(),
            Self::Misplaced { .. } => {
                Some("put it back where it belongs, or remove it; `kiwi lockfile freeze TOOL` makes a new one".into())
            }
            Self::Folder => {
                Some("move the folder away; `kiwi lockfile freeze TOOL` makes a lockfile in its place".into())
            }
            Self::Unreachable(_) => Some(
                "put a file there that can be read, or remove it; `kiwi lockfile freeze TOOL` makes a new one".into(),
            ),
        }
    }
}
