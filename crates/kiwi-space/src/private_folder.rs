//! A folder of small files that decide something: written durably, for their owner alone, one process at a time.

use rustix::process::geteuid;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _};
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

/// A small file that is changed in place, by one at a time. For counters, whose newest value may be lost in a crash of the
/// machine.
#[derive(Debug)]
pub struct InPlace {
    folder: PrivateFolder,
    path: PathBuf,
    open: Option<Open>,
}

/// An open file, and which one it is.
#[derive(Debug)]
struct Open {
    file: File,
    identity: (u64, u64),
}

/// The right to change a file in place; it ends when this is dropped.
#[derive(Debug)]
pub struct InPlaceTurn<'a> {
    /// There, as long as this is.
    open: &'a mut Option<Open>,
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

    /// One of its files, to be changed in place. Nothing is touched yet.
    pub fn in_place(&self, name: &str) -> InPlace {
        InPlace { folder: self.clone(), path: self.file(name), open: None }
    }
}

impl InPlace {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until nobody else changes it; it is made where there is none. Between two turns it stays open.
    pub fn turn(&mut self) -> Result<InPlaceTurn<'_>, SpaceError> {
        loop {
            let open = self.open.take().map_or_else(|| self.open(), Ok)?;
            open.file.lock().map_err(|error| SpaceError::unwritable(&self.path, error))?;
            // A file that is no longer there by its name is nobody's.
            let named = std::fs::symlink_metadata(&self.path).ok();
            if named.is_some_and(|named| (named.dev(), named.ino()) == open.identity) {
                self.open = Some(open);
                return Ok(InPlaceTurn { open: &mut self.open });
            }
        }
    }

    fn open(&self) -> Result<Open, SpaceError> {
        self.folder.make()?;
        let flags = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0);
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
        let open = || {
            let file = options.open(&self.path)?;
            let own = file.metadata()?;
            Ok::<_, std::io::Error>(Open { file, identity: (own.dev(), own.ino()) })
        };
        open().map_err(|error| SpaceError::unwritable(&self.path, error))
    }
}

impl InPlaceTurn<'_> {
    /// What it holds, as much as fits; how much that is.
    pub fn read(&self, bytes: &mut [u8]) -> std::io::Result<usize> {
        self.open.as_ref().map_or(Ok(0), |open| open.file.read_at(bytes, 0))
    }

    /// Puts these bytes where it begins.
    pub fn write(&self, bytes: &[u8]) -> std::io::Result<()> {
        self.open.as_ref().map_or(Ok(()), |open| open.file.write_all_at(bytes, 0))
    }
}

impl Drop for InPlaceTurn<'_> {
    fn drop(&mut self) {
        if self.open.as_ref().is_some_and(|open| open.file.unlock().is_err()) {
            *self.open = None;
        }
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
        assert!(store.read("link.json").is_err() && store.in_place("link.json").turn().is_err());
        std::fs::set_permissions(store.file("x.json"), std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(store.read("x.json").is_err());
        assert!(store.remove("x.json").unwrap() && !store.remove("x.json").unwrap());
        std::fs::set_permissions(store.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(store.exists().is_err() && store.names().is_err() && store.write("z", b"").is_err());
        let file = PrivateFolder::new(folder.path().join("file"));
        std::fs::write(file.path(), "").unwrap();
        assert!(file.exists().is_err());
    }

    #[test]
    fn what_is_changed_in_place_is_the_file_that_has_the_name() {
        let folder = tempfile::tempdir().unwrap();
        let store = PrivateFolder::new(folder.path().join("counts"));
        let read = |file: &mut InPlace| {
            let mut bytes = [0; 8];
            let turn = file.turn().unwrap();
            let length = turn.read(&mut bytes).unwrap();
            String::from_utf8(bytes[..length].to_vec()).unwrap()
        };
        let (mut one, mut other) = (store.in_place("x"), store.in_place("x"));
        one.turn().unwrap().write(b"1").unwrap();
        assert_eq!(read(&mut other), "1");
        // Removed, or something else put in its place: both begin with what is there now.
        std::fs::remove_file(one.path()).unwrap();
        assert_eq!(read(&mut one), "");
        one.turn().unwrap().write(b"2").unwrap();
        assert_eq!(read(&mut other), "2");
        store.write("y", b"3").unwrap();
        std::fs::rename(store.file("y"), one.path()).unwrap();
        assert_eq!((read(&mut one), read(&mut other)), ("3".to_owned(), "3".to_owned()));
        // One at a time, also within a process.
        let turn = one.turn().unwrap();
        let waits = std::thread::spawn(move || read(&mut other));
        std::thread::sleep(std::time::Duration::from_millis(20));
        turn.write(b"4").unwrap();
        drop(turn);
        assert_eq!(waits.join().unwrap(), "4");
    }
}
