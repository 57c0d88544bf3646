//! What can be wrong with a lockfile that is there.

use kiwi_model::lockfile::LockfileError;
use kiwi_model::{ErrorKind, Explain};

use crate::error::{SpaceError, plain};

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
    /// It cannot be opened or read.
    #[error("{0}")]
    Unreachable(String),
}

impl LockProblem {
    /// Whether a newer Kiwi wrote it: then it must not be written over.
    pub(super) fn is_newer(&self) -> bool {
        matches!(self, Self::Content(LockfileError::Newer(_)))
    }
}

impl From<SpaceError> for LockProblem {
    fn from(error: SpaceError) -> Self {
        Self::Unreachable(match error {
            SpaceError::Unreadable { source, .. } => format!("cannot be read: {}", plain(&source)),
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
            Self::Unreachable(_) => Some(
                "put a file there that can be read, or remove it; `kiwi lockfile freeze TOOL` makes a new one".into(),
            ),
        }
    }
}
