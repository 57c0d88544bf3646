//! Whose signatures are trusted: one file per key in the user space, `signers/{digest of the key}.json`.

use jiff::Timestamp;
use kiwi_model::Digest;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

use crate::error::SpaceError;
use crate::keys::PublicKey;
use crate::private_folder::PrivateFolder;

/// The keys that are trusted.
#[derive(Debug, Clone)]
pub struct Signers {
    folder: PrivateFolder,
}

/// A key that is trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signer {
    /// `ed25519:` and 64 digits.
    pub key: String,
    /// Whose it is, in the user's words.
    pub name: String,
    /// Since when.
    pub at: Timestamp,
}

impl Signers {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder: PrivateFolder::new(folder) }
    }

    /// Trusts a key.
    pub fn add(&self, key: &PublicKey, name: &str, at: Timestamp) -> Result<Signer, SpaceError> {
        let signer = Signer { key: key.to_string(), name: name.to_owned(), at };
        let file = file(&signer.key);
        let text = serde_json::to_vec_pretty(&signer)
            .map_err(|error| SpaceError::unwritable(self.folder.file(&file), error))?;
        self.folder.write(&file, &text)?;
        Ok(signer)
    }

    /// Trusts it no more. Says whether it was trusted.
    pub fn remove(&self, key: &str) -> Result<bool, SpaceError> {
        self.folder.remove(&file(key))
    }

    /// Every key that is trusted, by name.
    pub fn list(&self) -> Result<Vec<Signer>, SpaceError> {
        let mut found = Vec::new();
        if self.folder.exists()? {
            for name in self.folder.names()? {
                found.extend(self.read(&name)?);
            }
        }
        found.sort_by(|a: &Signer, b| (&a.name, &a.key).cmp(&(&b.name, &b.key)));
        Ok(found)
    }

    /// Whether a key is trusted.
    pub fn has(&self, key: &str) -> Result<bool, SpaceError> {
        Ok(self.folder.exists()? && self.read(&file(key))?.is_some_and(|signer| signer.key == key))
    }

    fn read(&self, name: &str) -> Result<Option<Signer>, SpaceError> {
        let Some(bytes) = self.folder.read(name)? else { return Ok(None) };
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| SpaceError::unreadable(self.folder.file(name), std::io::Error::other(error)))
    }
}

fn file(key: &str) -> String {
    format!("{}.json", Digest::of(key.as_bytes()).hex())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{KeyPurpose, Keys};

    #[test]
    fn a_key_is_trusted_until_it_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let signers = Signers::new(folder.path().join("signers"));
        let key = Keys::new(folder.path().join("keys")).get_or_make(KeyPurpose::User).unwrap().public();
        let text = key.to_string();
        assert!(!signers.has(&text).unwrap() && signers.list().unwrap().is_empty());
        signers.add(&key, "the team", Timestamp::UNIX_EPOCH).unwrap();
        assert!(signers.has(&text).unwrap());
        assert!(!signers.has("ed25519:00").unwrap());
        assert_eq!(signers.list().unwrap()[0].name, "the team");
        assert!(signers.remove(&text).unwrap() && !signers.remove(&text).unwrap());
        assert!(!signers.has(&text).unwrap());
    }
}
