//! A folder of small files that decide something: written durably, for their owner alone, one process at a time.

use rustix::process::geteuid;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::durable;
use crate::error::{PathProblem, SpaceError};
use crate::private;

/// A folder that belongs to the user and that nobody else can write to. It is made when something is first written.
#[derive(Debug, Clone)]
pub struct PrivateFolder {
    path: PathBuf,
}

/// The right to change what is in a folder; it ends when this is dropped.
#[derive(Debug)]
pub struct Turn {
    _folder: File,
}

impl PrivateFolder {
    /// The folder at this path, whether or not it is there.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where one of its files is.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Whether it is there, once it was seen that nobody else can change what is in it.
    pub fn exists(&self) -> Result<bool, SpaceError> {
        match std::fs::symlink_metadata(&self.path) {
            Ok(metadata) if !metadata.is_dir() => {
                Err(SpaceError::bad_path(&self.path, PathProblem::NotFolder))
            }
            Ok(metadata) if metadata.uid() != geteuid().as_raw() => {
                let why = std::io::Error::other("it belongs to somebody else");
                Err(SpaceError::unreadable(&self.path, why))
            }
            Ok(metadata) if metadata.mode() & 0o022 != 0 => {
                let why = format!("others can write to it (mode {:o})", metadata.mode() & 0o777);
                Err(SpaceError::unreadable(&self.path, std::io::Error::other(why)))
            }
            Ok(_) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(SpaceError::unreadable(&self.path, error)),
        }
    }

    /// Makes it, and those around it.
    pub fn make(&self) -> Result<(), SpaceError> {
        if self.exists()? {
            return Ok(());
        }
        if let Some(around) = self.path.parent() {
            durable::make_folder(around)?;
        }
        match DirBuilder::new().mode(0o700).create(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(SpaceError::unwritable(&self.path, error));
            }
            _ => {}
        }
        durable::sync_folder(self.path.parent().unwrap_or(&self.path))?;
        self.exists().map(|_| ())
    }

    /// Waits until no other thread or process changes anything in it. It must be there.
    pub fn turn(&self) -> Result<Turn, SpaceError> {
        let folder = File::open(&self.path).map_err(|error| SpaceError::unreadable(&self.path, error))?;
        folder.lock().map_err(|error| SpaceError::unreadable(&self.path, error))?;
        Ok(Turn { _folder: folder })
    }

    /// The names of everything in it, sorted; hidden files are unfinished writes, and nobody's.
    pub fn names(&self) -> Result<Vec<String>, SpaceError> {
        if !self.exists()? {
            return Ok(Vec::new());
        }
        let unreadable = |error| SpaceError::unreadable(&self.path, error);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path).map_err(unreadable)? {
            let name = entry.map_err(unreadable)?.file_name();
            let name =
                name.into_string().map_err(|_| SpaceError::bad_path(&self.path, PathProblem::NotUtf8))?;
            if !name.starts_with('.') {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// The bytes of a file; `None` where there is none. One that is a link, somebody else's, or open to others is
    /// refused.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, SpaceError> {
        let path = self.file(name);
        match std::fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.file_type().is_symlink() => {
                Err(SpaceError::bad_path(&path, PathProblem::Symlink))
            }
            Ok(metadata) if !metadata.is_file() => Err(SpaceError::bad_path(&path, PathProblem::SpecialFile)),
            Ok(metadata) if metadata.uid() != geteuid().as_raw() => {
                Err(SpaceError::unreadable(&path, std::io::Error::other("it belongs to somebody else")))
            }
            Ok(_) => private::read(&path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(SpaceError::unreadable(&path, error)),
        }
    }

    /// Replaces a file so that a crash leaves the old or the new.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), SpaceError> {
        self.make()?;
        private::write(&self.file(name), bytes)
    }

    /// Removes a file; says whether it was there.
    pub fn remove(&self, name: &str) -> Result<bool, SpaceError> {
        let path = self.file(name);
        let is_there = path.symlink_metadata().is_ok();
        private::remove(&path)?;
        Ok(is_there)
    }

    /// Opens a file to read and to change it in place, made where there was none, and locked until it is closed. For
    /// counters, whose newest value may be lost in a crash of the machine.
    pub fn open_locked(&self, name: &str) -> Result<File, SpaceError> {
        self.make()?;
        let path = self.file(name);
        let unwritable = |error: std::io::Error| SpaceError::unwritable(&path, error);
        let flags = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0);
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(flags)
            .open(&path)
            .map_err(unwritable)?;
        file.lock().map_err(unwritable)?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn what_others_can_change_or_see_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let store = PrivateFolder::new(folder.path().join("a/b"));
        assert!(!store.exists().unwrap() && store.names().unwrap().is_empty());
        store.write("x.json", b"1").unwrap();
        std::fs::write(store.file(".new-1"), "unfinished").unwrap();
        assert_eq!(store.names().unwrap(), ["x.json"]);
        assert_eq!(store.read("x.json").unwrap().unwrap(), b"1");
        assert!(store.read("y.json").unwrap().is_none());
        std::os::unix::fs::symlink(store.file("x.json"), store.file("link.json")).unwrap();
        assert!(store.read("link.json").is_err() && store.open_locked("link.json").is_err());
        std::fs::set_permissions(store.file("x.json"), std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(store.read("x.json").is_err());
        assert!(store.remove("x.json").unwrap() && !store.remove("x.json").unwrap());
        std::fs::set_permissions(store.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(store.exists().is_err() && store.names().is_err() && store.write("z", b"").is_err());
        let file = PrivateFolder::new(folder.path().join("file"));
        std::fs::write(file.path(), "").unwrap();
        assert!(file.exists().is_err());
    }
}
