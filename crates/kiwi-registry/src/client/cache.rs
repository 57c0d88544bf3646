//! What was fetched, kept for the next time: for every project, and for when nobody answers.
//!
//! Blobs lie under their hash and are hashed again whenever they are read, so what is wrong here is fetched anew and
//! never installed. Copies are made of them, no links, so that editing an installed file cannot change what is kept.

use kiwi_model::{Digest, ToolId, Version, VersionReq};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::ClientError;
use crate::protocol::{Chain, Release};

/// What was fetched.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
}

/// A blob that is kept.
#[derive(Debug, Clone)]
pub struct KeptBlob {
    /// Where it lies.
    pub file: PathBuf,
    /// How long it is.
    pub size: u64,
    /// When it was last used.
    pub last_used: SystemTime,
}

impl Cache {
    /// The cache in a folder, which is made when something is put there.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// A blob, if it is here as its name says.
    pub fn blob(&self, digest: &Digest) -> Option<Vec<u8>> {
        let path = self.blob_path(digest);
        let bytes = std::fs::read(&path).ok().filter(|bytes| Digest::of(bytes) == *digest)?;
        // So that it is known to be of use; where that cannot be written down, it is fetched again some day.
        let used = std::fs::File::options().append(true).open(&path);
        let _ = used.and_then(|file| file.set_modified(now()));
        Some(bytes)
    }

    /// Every blob that is kept.
    pub fn kept(&self) -> Vec<KeptBlob> {
        let below = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten();
        let files = below(self.folder.join("blobs")).flat_map(|folder| below(folder.path()));
        let kept = |entry: std::fs::DirEntry| {
            let found = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
            Some(KeptBlob { file: entry.path(), size: found.len(), last_used: found.modified().ok()? })
        };
        files.filter_map(kept).collect()
    }

    /// Removes a blob; says whether it was there. Whoever needs it fetches it again.
    pub fn remove(kept: &KeptBlob) -> bool {
        std::fs::remove_file(&kept.file).is_ok()
    }

    /// Whether there is a blob of that name and length. Whoever reads it finds out whether it is the right one.
    pub fn has_blob(&self, digest: &Digest, size: u64) -> bool {
        std::fs::metadata(self.blob_path(digest)).is_ok_and(|found| found.is_file() && found.len() == size)
    }

    /// Keeps a blob.
    pub fn keep_blob(&self, digest: &Digest, bytes: &[u8]) -> Result<(), ClientError> {
        write(&self.blob_path(digest), bytes)
    }

    /// What a registry said last about a chain.
    pub(super) fn chain(&self, url: &str, id: &ToolId, requirement: Option<&VersionReq>) -> Option<Chain> {
        read(&self.chain_path(url, id, requirement))
    }

    pub(super) fn keep_chain(
        &self,
        url: &str,
        id: &ToolId,
        requirement: Option<&VersionReq>,
        chain: &Chain,
    ) -> Result<(), ClientError> {
        write_json(&self.chain_path(url, id, requirement), chain)
    }

    /// What a registry said about a version. A version never changes, so neither does this; that it was yanked since is not
    /// known here.
    pub(super) fn release(&self, url: &str, id: &ToolId, version: &Version) -> Option<Release> {
        read(&self.release_path(url, id, version))
    }

    pub(super) fn keep_release(&self, url: &str, release: &Release) -> Result<(), ClientError> {
        write_json(&self.release_path(url, &release.tool_id, &release.version), release)
    }

    fn blob_path(&self, digest: &Digest) -> PathBuf {
        let hex = digest.hex();
        let (first, rest) = hex.split_at(2);
        self.folder.join("blobs").join(first).join(rest)
    }

    /// Addresses make no good names.
    fn said(&self, url: &str) -> PathBuf {
        let name: String = Digest::of(url.as_bytes()).hex().chars().take(16).collect();
        self.folder.join("said").join(name)
    }

    fn chain_path(&self, url: &str, id: &ToolId, requirement: Option<&VersionReq>) -> PathBuf {
        let requirement = requirement.map(ToString::to_string).unwrap_or_default();
        let name: String = Digest::of(requirement.as_bytes()).hex().chars().take(16).collect();
        self.said(url).join("chains").join(id.as_str()).join(format!("{name}.json"))
    }

    fn release_path(&self, url: &str, id: &ToolId, version: &Version) -> PathBuf {
        self.said(url).join("releases").join(id.as_str()).join(format!("{version}.json"))
    }
}

#[expect(clippy::disallowed_methods, reason = "when something was used, for whoever cleans up")]
fn now() -> SystemTime {
    SystemTime::now()
}

fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), ClientError> {
    write(path, &serde_json::to_vec(value).unwrap_or_default())
}

/// Whole or not at all. Whether it outlasts a crash does not matter: it is hashed when it is read.
fn write(path: &Path, bytes: &[u8]) -> Result<(), ClientError> {
    let unusable = |source| ClientError::Cache { path: path.to_owned(), source };
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder).map_err(unusable)?;
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(folder).map_err(unusable)?;
    file.write_all(bytes).map_err(unusable)?;
    file.persist(path).map_err(|error| unusable(error.error))?;
    Ok(())
}
