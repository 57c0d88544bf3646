//! What was fetched, kept for the next time: for every project, and for when nobody answers.
//!
//! Blobs lie under their hash and are hashed again whenever they are read, so what is wrong here is fetched anew and
//! never installed. Copies are made of them, no links, so that editing an installed file cannot change what is kept.

use kiwi_model::{Digest, ToolId, Version, VersionReq};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::ClientError;
use crate::protocol::{Chain, Release};

/// What was fetched.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// The cache in a folder, which is made when something is put there.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// A blob, if it is here as its name says.
    pub fn blob(&self, digest: &Digest) -> Option<Vec<u8>> {
        let bytes = std::fs::read(self.blob_path(digest)).ok()?;
        (Digest::of(&bytes) == *digest).then_some(bytes)
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
