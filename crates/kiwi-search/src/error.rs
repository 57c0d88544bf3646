//! What goes wrong with an index.

use std::path::{Path, PathBuf};
use thiserror::Error;

use crate::embed::EmbedError;

/// Why an index cannot be used.
#[derive(Debug, Error)]
pub enum SearchError {
    /// A file or folder of the index.
    #[error("the search index at `{}` cannot be used: {source}", path.display())]
    Unusable {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// What is in it is not an index, or not all of one.
    #[error("the search index at `{}` is damaged: {why}", path.display())]
    Damaged {
        /// Its folder.
        path: PathBuf,
        /// What does not fit.
        why: String,
    },
    /// No vector for a text.
    #[error(transparent)]
    Embed(#[from] EmbedError),
}

impl SearchError {
    pub(crate) fn unusable(path: &Path, source: impl Into<std::io::Error>) -> Self {
        Self::Unusable { path: path.to_owned(), source: source.into() }
    }

    /// Damage that made its reader panic.
    pub fn unreadable(path: &Path) -> Self {
        Self::damaged(path, &"it cannot be read")
    }

    pub(crate) fn damaged(path: &Path, why: &dyn std::fmt::Display) -> Self {
        Self::Damaged { path: path.to_owned(), why: why.to_string() }
    }
}
