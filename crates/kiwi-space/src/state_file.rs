//! A small file that several processes change in turn, and that a crash leaves as it was or as it should be.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::durable;
use crate::error::SpaceError;

/// A file of state.
#[derive(Debug, Clone)]
pub struct StateFile {
    path: PathBuf,
}

impl StateFile {
    /// The file at this path, which may have to be made.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it holds; `None` where it was never written.
    pub fn read(&self) -> Result<Option<Vec<u8>>, SpaceError> {
        match std::fs::read(&self.path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(SpaceError::unreadable(&self.path, error)),
        }
    }

    /// Replaces what it holds, durably, by what `change` makes of it; nobody else changes it meanwhile.
    pub fn update<E: From<SpaceError>>(
        &self,
        change: impl FnOnce(Option<Vec<u8>>) -> Result<Vec<u8>, E>,
    ) -> Result<(), E> {
        let _turn = self.turn()?;
        let bytes = change(self.read()?)?;
        Ok(durable::write(&self.path, &bytes)?)
    }

    fn turn(&self) -> Result<File, SpaceError> {
        let unwritable = |error| SpaceError::unwritable(&self.path, error);
        durable::make_folder(self.path.parent().unwrap_or(&self.path))?;
        // Beside it: the file itself is replaced, so a lock on it would be a lock on what was there before.
        let mut name = self.path.clone().into_os_string();
        name.push(".lock");
        let file = File::options().create(true).truncate(false).write(true).open(name).map_err(unwritable)?;
        file.lock().map_err(unwritable)?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_made_one_after_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let file = StateFile::new(folder.path().join("state/count"));
        assert!(file.read().unwrap().is_none());
        let count = |bytes: Option<Vec<u8>>| -> Result<Vec<u8>, SpaceError> {
            let before: u32 = bytes.map_or(0, |bytes| String::from_utf8(bytes).unwrap().parse().unwrap());
            Ok((before + 1).to_string().into_bytes())
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..25).for_each(|_| file.update(count).unwrap()));
            }
        });
        assert_eq!(file.read().unwrap().unwrap(), b"100");
    }
}
