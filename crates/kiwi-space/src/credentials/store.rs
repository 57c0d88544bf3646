//! The file of credentials: read whole, written whole, one writer at a time.

use rustix::fs::FlockOperation;
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::sync::Arc;

use super::credential::{Credential, Written};
use super::keeper::{KeeperProblem, KeyKeeper, Nobody};
use super::place::{Found, KeyPlace, STORE};
use crate::error::SpaceError;
use crate::private;

const LOCK: &str = ".lock";
/// Nobody but the owner.
const PRIVATE_FILE: u32 = 0o600;
const PRIVATE_FOLDER: u32 = 0o700;

/// The user's credentials.
#[derive(Debug, Clone)]
pub struct Credentials {
    folder: PathBuf,
    keeper: Arc<dyn KeyKeeper>,
}

/// All of them, by name.
type All = BTreeMap<String, Credential>;

impl Credentials {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, keeper: Arc::new(Nobody(KeeperProblem::Absent)) }
    }

    /// The same credentials with somebody who may keep their key.
    #[must_use]
    pub fn kept_by(self, keeper: Arc<dyn KeyKeeper>) -> Self {
        Self { keeper, ..self }
    }

    /// The credential of this name.
    pub fn get(&self, name: &str) -> Result<Option<Credential>, SpaceError> {
        Ok(self.all()?.remove(name))
    }

    /// All of them, by name.
    pub fn all(&self) -> Result<BTreeMap<String, Credential>, SpaceError> {
        Ok(self.load()?.0)
    }

    /// Stores a credential under a name; says whether there was one before.
    pub fn set(&self, name: &str, credential: Credential) -> Result<bool, SpaceError> {
        check_name(name)?;
        self.change(|all| all.insert(name.to_owned(), credential).is_some())
    }

    /// Removes a credential; says whether there was one. With the last one the store and its key go too.
    pub fn remove(&self, name: &str) -> Result<bool, SpaceError> {
        self.change(|all| all.remove(name).is_some())
    }

    /// What is in the store, and the key it was opened with.
    fn load(&self) -> Result<(All, Option<Found>), SpaceError> {
        let path = self.folder.join(STORE);
        // Without a store nobody needs what the keyring may have left of an earlier one.
        let Some(sealed) = private::read(&path)? else { return Ok((All::new(), self.place().in_file()?)) };
        let opened = self.place().find().and_then(|found| {
            let found =
                found.ok_or_else(|| self.unreadable("its key, `identity.txt` beside it, is gone".into()))?;
            Ok((found.key.open(&sealed).map_err(|why| self.unreadable(why))?, found))
        });
        let (plain, found) = match opened {
            // Between two looks somebody removed the last credential, or stored a first one with a new key.
            Err(_) if private::read(&path)?.as_ref() != Some(&sealed) => return self.load(),
            opened => opened?,
        };
        let written: BTreeMap<String, Written> =
            serde_json::from_slice(&plain).map_err(|_| self.unreadable("it holds no credentials".into()))?;
        Ok((written.into_iter().map(|(name, written)| (name, written.into())).collect(), Some(found)))
    }

    fn change(&self, change: impl FnOnce(&mut All) -> bool) -> Result<bool, SpaceError> {
        DirBuilder::new()
            .recursive(true)
            .mode(PRIVATE_FOLDER)
            .create(&self.folder)
            .map_err(|error| SpaceError::unwritable(&self.folder, error))?;
        let _lock = self.lock()?;
        let (mut all, found) = self.load()?;
        let answer = change(&mut all);
        let path = self.folder.join(STORE);
        if all.is_empty() {
            private::remove(&path)?;
            self.place().forget()?;
            return Ok(answer);
        }
        let (key, after) = self.place().settle(found)?;
        let written: BTreeMap<&str, Written> =
            all.iter().map(|(name, credential)| (name.as_str(), credential.into())).collect();
        let plain = serde_json::to_vec(&written).map_err(|error| self.unreadable(error.to_string()))?;
        let sealed = key.seal(&plain).map_err(|why| self.unreadable(why))?;
        private::write(&path, &sealed)?;
        self.place().finish(&after)?;
        Ok(answer)
    }

    fn place(&self) -> KeyPlace<'_> {
        KeyPlace { folder: &self.folder, keeper: self.keeper.as_ref() }
    }

    fn lock(&self) -> Result<File, SpaceError> {
        let path = self.folder.join(LOCK);
        let unwritable = |error: std::io::Error| SpaceError::unwritable(&path, error);
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).write(true).mode(PRIVATE_FILE).open(&path);
        let file = file.map_err(unwritable)?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive).map_err(|error| unwritable(error.into()))?;
        Ok(file)
    }

    fn unreadable(&self, why: String) -> SpaceError {
        SpaceError::Credentials { path: self.folder.join(STORE), why }
    }
}

/// A name that can be a variable of a tool's environment.
fn check_name(name: &str) -> Result<(), SpaceError> {
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let good = starts_well
        && name.len() <= 128
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    if good { Ok(()) } else { Err(SpaceError::CredentialName { name: name.escape_debug().to_string() }) }
}
