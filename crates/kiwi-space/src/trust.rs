//! Which projects their user trusts: agents run nothing of a folder that merely was cloned.
//!
//! One file per project in the user space, `trust/{digest of its folder}.json`, with a digest over the project's
//! `config/`: what it asks for may change only when the user is asked again. Its tools may change freely.

use jiff::Timestamp;
use kiwi_model::{Digest, Hasher};
use serde::{Deserialize, Serialize};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::error::SpaceError;
use crate::private_folder::PrivateFolder;
use crate::root::Root;
use crate::spaces::AI;

const CONFIG: &str = "config";
/// More is no configuration.
const MOST_BYTES: u64 = 8 << 20;

/// The projects that are trusted.
#[derive(Debug, Clone)]
pub struct Trust {
    folder: PrivateFolder,
}

/// A project that is trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trusted {
    /// Its folder.
    pub project: PathBuf,
    /// Digest over its configuration.
    pub config: Digest,
    /// Since when.
    pub at: Timestamp,
}

/// How a project stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustState {
    /// As it was when its user trusted it.
    Trusted,
    /// Nobody ever did.
    Unknown,
    /// Its configuration has changed since.
    Changed,
}

impl Trust {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder: PrivateFolder::new(folder) }
    }

    /// How a project with this configuration stands.
    pub fn state(&self, project: &Path, config: Option<Digest>) -> Result<TrustState, SpaceError> {
        Ok(match self.read(&name(project))? {
            None => TrustState::Unknown,
            Some(trusted) if trusted.project == project && Some(trusted.config) == config => {
                TrustState::Trusted
            }
            Some(_) => TrustState::Changed,
        })
    }

    /// Trusts a project as it is now.
    pub fn add(&self, project: &Path, at: Timestamp) -> Result<Trusted, SpaceError> {
        let trusted = Trusted { project: project.to_owned(), config: config_digest(&project.join(AI))?, at };
        let name = name(project);
        let text = serde_json::to_vec_pretty(&trusted)
            .map_err(|error| SpaceError::unwritable(self.folder.file(&name), error))?;
        self.folder.write(&name, &text)?;
        Ok(trusted)
    }

    /// Trusts it no more. Says whether it was trusted.
    pub fn remove(&self, project: &Path) -> Result<bool, SpaceError> {
        self.folder.remove(&name(project))
    }

    /// Every project that is trusted, by folder.
    pub fn list(&self) -> Result<Vec<Trusted>, SpaceError> {
        let mut found = Vec::new();
        for name in self.folder.names()? {
            found.extend(self.read(&name)?);
        }
        found.sort_by(|a, b| a.project.cmp(&b.project));
        Ok(found)
    }

    fn read(&self, name: &str) -> Result<Option<Trusted>, SpaceError> {
        if !self.folder.exists()? {
            return Ok(None);
        }
        let Some(bytes) = self.folder.read(name)? else { return Ok(None) };
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| SpaceError::unreadable(self.folder.file(name), std::io::Error::other(error)))
    }
}

fn name(project: &Path) -> String {
    format!("{}.json", Digest::of(project.as_os_str().as_bytes()).hex())
}

/// A digest over every file below `config/` of an `.ai` folder: names and contents.
pub(crate) fn config_digest(ai: &Path) -> Result<Digest, SpaceError> {
    let mut hasher = Hasher::default();
    let Some(root) = Root::open(ai)? else { return Ok(hasher.finish()) };
    let mut names = Vec::new();
    collect(ai, CONFIG, &mut names)?;
    names.sort();
    for name in names {
        let mut bytes = Vec::new();
        let file = root.open_file(&name)?.file;
        file.take(MOST_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| SpaceError::unreadable(root.absolute(&name), error))?;
        for part in [name.as_bytes(), &bytes] {
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
    }
    Ok(hasher.finish())
}

fn collect(ai: &Path, folder: &str, names: &mut Vec<String>) -> Result<(), SpaceError> {
    let path = ai.join(folder);
    let entries = match std::fs::read_dir(&path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(SpaceError::unreadable(&path, error)),
    };
    for entry in entries {
        let entry = entry.map_err(|error| SpaceError::unreadable(&path, error))?;
        let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type().map_err(|error| SpaceError::unreadable(entry.path(), error))?;
        if kind.is_dir() {
            collect(ai, &name, names)?;
        } else {
            names.push(name);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_lasts_until_the_configuration_changes() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("project");
        let config = project.join(".ai/config");
        std::fs::create_dir_all(config.join("more")).unwrap();
        std::fs::create_dir_all(project.join(".ai/tools")).unwrap();
        std::fs::write(config.join("kiwi.toml"), "").unwrap();
        let trust = Trust::new(folder.path().join("trust"));
        let state = || trust.state(&project, Some(config_digest(&project.join(".ai")).unwrap())).unwrap();
        assert_eq!(state(), TrustState::Unknown);
        trust.add(&project, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(state(), TrustState::Trusted);
        std::fs::write(project.join(".ai/tools/new.sh"), "").unwrap();
        assert_eq!(state(), TrustState::Trusted);
        std::fs::write(config.join("more/servers.toml"), "x").unwrap();
        assert_eq!(state(), TrustState::Changed);
        trust.add(&project, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(trust.list().unwrap().len(), 1);
        assert!(trust.remove(&project).unwrap() && !trust.remove(&project).unwrap());
        assert_eq!(state(), TrustState::Unknown);
        trust.folder.write(&name(&project), b"{").unwrap();
        assert!(trust.state(&project, None).is_err());
    }
}
