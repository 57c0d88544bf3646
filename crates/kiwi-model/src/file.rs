//! The files of a tool: what is hashed of them, and the bytes that were hashed.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

use crate::Digest;

/// What is hashed of one file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileEntry {
    /// Path inside the package, `/`-separated.
    pub path: String,
    /// Digest of the bytes.
    pub sha256: Digest,
    /// Whether the owner may execute it.
    pub is_executable: bool,
}

/// A file together with where its verified bytes are.
#[derive(Debug, Clone)]
pub struct File {
    /// What was hashed.
    pub entry: FileEntry,
    /// The bytes.
    pub content: Content,
}

/// Where verified bytes are.
#[derive(Clone)]
pub enum Content {
    /// In memory: these are the bytes that were hashed.
    Bytes(Arc<[u8]>),
    /// Too large to hold. Whoever uses it must hash what it reads, through the descriptor it reads from.
    OnDisk(PathBuf),
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::OnDisk(path) => write!(f, "on disk at {}", path.display()),
        }
    }
}
