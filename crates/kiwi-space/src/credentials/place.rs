//! Where the key of the store is: in the desktop's keyring where there is one, else in a file beside the store.
//!
//! `keyring.txt` says that it is in the keyring, and under which name: the public half, so that two stores never take
//! each other's key. As long as `identity.txt` is there, it is what counts; it goes only when the keyring has shown
//! that it has the key.

use kiwi_model::Secret;
use std::path::{Path, PathBuf};

use super::keeper::{KeeperProblem, KeyKeeper};
use super::seal::Key;
use crate::error::SpaceError;
use crate::private;

/// The store itself.
pub(super) const STORE: &str = "store.age";
const IDENTITY: &str = "identity.txt";
const IN_KEYRING: &str = "keyring.txt";

/// A folder and who keeps its key.
pub(super) struct KeyPlace<'a> {
    pub folder: &'a Path,
    pub keeper: &'a dyn KeyKeeper,
}

/// A key, and where it was.
pub(super) struct Found {
    pub key: Key,
    is_in_file: bool,
}

/// What remains to be done once the store was written with a key.
#[derive(PartialEq, Eq)]
pub(super) enum After {
    Nothing,
    /// The keyring has the key now.
    DropFile,
}

impl KeyPlace<'_> {
    /// The key in the file, if it is there.
    pub fn in_file(&self) -> Result<Option<Found>, SpaceError> {
        let Some(bytes) = private::read(&self.path(IDENTITY))? else { return Ok(None) };
        let key = std::str::from_utf8(&bytes).ok().and_then(Key::parse);
        let key = key.ok_or_else(|| self.unreadable("its identity file holds no key"))?;
        Ok(Some(Found { key, is_in_file: true }))
    }

    /// The key of the store, wherever it is.
    pub fn find(&self) -> Result<Option<Found>, SpaceError> {
        if let Some(found) = self.in_file()? {
            return Ok(Some(found));
        }
        let Some(name) = self.name()? else { return Ok(None) };
        let kept = self.keeper.get(&name).map_err(|problem| self.out_of_reach(problem))?;
        let kept = kept.ok_or_else(|| self.out_of_reach(KeeperProblem::Gone))?;
        let key = Key::parse(kept.expose()).filter(|key| key.name() == name);
        let key = key.ok_or_else(|| self.unreadable("the keyring has something else in place of its key"))?;
        Ok(Some(Found { key, is_in_file: false }))
    }

    /// A key to write with: the one that was found, moved into the keyring where that is possible by now, or a new one.
    pub fn settle(&self, found: Option<Found>) -> Result<(Key, After), SpaceError> {
        match found {
            Some(Found { key, is_in_file: false }) => Ok((key, After::Nothing)),
            Some(Found { key, is_in_file: true }) => {
                // A keyring that does not take it is no reason to refuse what the file still opens.
                let is_moved = self.hand_over(&key).is_ok();
                Ok((key, if is_moved { After::DropFile } else { After::Nothing }))
            }
            None => {
                let key = Key::generate();
                match self.hand_over(&key) {
                    Ok(()) => {}
                    Err(SpaceError::KeyOutOfReach { problem, .. }) if problem.is_absence() => {
                        private::write(&self.path(IDENTITY), key.to_text().as_bytes())?;
                    }
                    Err(error) => return Err(error),
                }
                Ok((key, After::Nothing))
            }
        }
    }

    /// The store was written.
    pub fn finish(&self, after: &After) -> Result<(), SpaceError> {
        match after {
            After::Nothing => Ok(()),
            After::DropFile => private::remove(&self.path(IDENTITY)),
        }
    }

    /// The store is gone. A key that the keyring does not let go opens nothing any more.
    pub fn forget(&self) -> Result<(), SpaceError> {
        if let Some(name) = self.name()? {
            let _ = self.keeper.forget(&name);
            private::remove(&self.path(IN_KEYRING))?;
        }
        private::remove(&self.path(IDENTITY))
    }

    /// Puts a key into the keyring, reads it back, and only then notes that it is there.
    fn hand_over(&self, key: &Key) -> Result<(), SpaceError> {
        let (name, text) = (key.name(), Secret::new(key.to_text()));
        let back = self.keeper.put(&name, &text).and_then(|()| self.keeper.get(&name));
        let back = back.map_err(|problem| self.out_of_reach(problem))?;
        if back.is_none_or(|back| back.expose() != text.expose()) {
            let why = "it does not give back what it was given".to_owned();
            return Err(self.out_of_reach(KeeperProblem::Refused { why }));
        }
        let note = format!("# the key of store.age is in the desktop's keyring, as the one of:\n{name}\n");
        private::write(&self.path(IN_KEYRING), note.as_bytes())
    }

    fn name(&self) -> Result<Option<String>, SpaceError> {
        let Some(bytes) = private::read(&self.path(IN_KEYRING))? else { return Ok(None) };
        let text = String::from_utf8_lossy(&bytes);
        let line = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
        let name = line.ok_or_else(|| self.unreadable("`keyring.txt` beside it is empty"))?;
        Ok(Some(name.to_owned()))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn unreadable(&self, why: &str) -> SpaceError {
        SpaceError::Credentials { path: self.path(STORE), why: why.to_owned() }
    }

    fn out_of_reach(&self, problem: KeeperProblem) -> SpaceError {
        SpaceError::KeyOutOfReach { path: self.path(STORE), problem }
    }
}
