//! The store, open for one writer at a time. Everything is written through folders that no symlink leads to.

use jiff::Timestamp;
use kiwi_model::Space;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, fstat, fsync, openat, statat, unlinkat};
use rustix::io::Errno;
use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;

use super::folder::{make_folder, open_folder};
use super::place::{TEMPORARY, inside, path_of, split};
use super::reconcile::View;
use super::{index, time};
use crate::boundary;
use crate::durable;
use crate::error::SpaceError;
use crate::root::Root;
use crate::spaces::Home;

const LOCK: &str = ".lock";
const IGNORE: &str = ".gitignore";
/// What a machine makes; the lockfiles themselves belong into git.
const IGNORED: &str = "/.index.json\n/.lock\n.new-*\n";

/// The store of a space, locked until this is dropped.
pub(super) struct Store {
    pub(super) root: Root,
    pub(super) scope: Space,
    _lock: File,
}

impl Store {
    /// Makes the store if need be and waits until nobody else writes.
    pub(super) fn create(home: &Home) -> Result<Self, SpaceError> {
        durable::make_folder(&home.ai)?;
        let root = Root::open(&home.ai)?.ok_or(SpaceError::NoSpace { space: home.space })?;
        make_folder(&root, "")?;
        Self::lock(root, home.space, FlockOperation::LockExclusive)
    }

    /// Waits until nobody else writes; `None` where there is no store.
    pub(super) fn existing(home: &Home) -> Result<Option<Self>, SpaceError> {
        let Some(root) = Root::open(&home.ai)? else { return Ok(None) };
        if root.stat(&inside("")).is_none() {
            return Ok(None);
        }
        Self::lock(root, home.space, FlockOperation::LockExclusive).map(Some)
    }

    /// Does not wait; `None` where somebody else writes or nobody can.
    pub(super) fn idle(home: &Home) -> Option<Self> {
        let root = Root::open(&home.ai).ok()??;
        Self::lock(root, home.space, FlockOperation::NonBlockingLockExclusive).ok()
    }

    fn lock(root: Root, scope: Space, operation: FlockOperation) -> Result<Self, SpaceError> {
        let folder = open_folder(&root, "")?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let unwritable = |error: Errno| SpaceError::unwritable(root.absolute(&inside(LOCK)), error);
        let lock = loop {
            let lock = openat(&folder, LOCK, flags, Mode::from(0o644)).map_err(unwritable)?;
            match rustix::fs::flock(&lock, operation) {
                Ok(()) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(unwritable(error)),
            }
            // Whoever cleans a checkout may remove the file; one that is gone keeps nobody out.
            let held = fstat(&lock).map_err(unwritable)?;
            let there = statat(&folder, LOCK, AtFlags::SYMLINK_NOFOLLOW);
            if there.is_ok_and(|there| (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino)) {
                break lock;
            }
        };
        let store = Self { root, scope, _lock: File::from(lock) };
        if matches!(statat(&folder, IGNORE, AtFlags::SYMLINK_NOFOLLOW), Err(Errno::NOENT)) {
            store.put(IGNORE, IGNORED.as_bytes())?;
        }
        Ok(store)
    }

    /// Replaces a file of the store: written beside it, synced, renamed over it, the folder synced.
    pub(super) fn put(&self, path: &str, bytes: &[u8]) -> Result<Timestamp, SpaceError> {
        let (category, file) = split(path);
        let folder = make_folder(&self.root, category)?;
        let unwritable = |error: io::Error| SpaceError::unwritable(self.root.absolute(&inside(path)), error);
        let (temporary, mut new) = temporary(&folder).map_err(unwritable)?;
        let written = (|| {
            boundary::pass();
            new.write_all(bytes)?;
            new.set_permissions(Permissions::from_mode(0o644))?;
            boundary::pass();
            new.sync_all()?;
            boundary::pass();
            rustix::fs::renameat(&folder, temporary.as_str(), &folder, file)?;
            boundary::pass();
            fsync(&folder)?;
            boundary::pass();
            Ok(time::modified(&fstat(&new)?))
        })();
        if written.is_err() {
            let _ = unlinkat(&folder, temporary.as_str(), AtFlags::empty());
        }
        written.map_err(unwritable)
    }

    /// Removes a lockfile, and the folders that it leaves empty. One that is gone already is removed.
    pub(super) fn remove(&self, key: &str) -> Result<(), SpaceError> {
        let path = path_of(key);
        let (category, file) = split(&path);
        let folder = open_folder(&self.root, category)?;
        match unlinkat(&folder, file, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(SpaceError::unwritable(self.root.absolute(&inside(&path)), error)),
        }
        boundary::pass();
        let mut emptied = category;
        while !emptied.is_empty() {
            let (parent, name) = split(emptied);
            let removed = open_folder(&self.root, parent)
                .is_ok_and(|parent| unlinkat(&parent, name, AtFlags::REMOVEDIR).is_ok());
            boundary::pass();
            // Something else is left in it, as it may be.
            emptied = if removed { parent } else { "" };
        }
        Ok(())
    }

    /// Writes the index, and removes what killed writers left: while this lock is held nobody else writes.
    pub(super) fn write_index(&self, view: &View) -> Result<(), SpaceError> {
        for path in &view.leftovers {
            let (category, file) = split(path);
            if let Ok(folder) = open_folder(&self.root, category) {
                let _ = unlinkat(&folder, file, AtFlags::empty());
                boundary::pass();
            }
        }
        let text = index::text(view, self.scope)
            .map_err(|error| SpaceError::unwritable(self.root.absolute(&inside(index::NAME)), error))?;
        self.put(index::NAME, text.as_bytes()).map(|_| ())
    }
}

/// A new file with a name that nobody has.
fn temporary(folder: &OwnedFd) -> io::Result<(String, File)> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for number in 0..u16::MAX {
        let name = format!("{TEMPORARY}{}-{number}", std::process::id());
        match openat(folder, name.as_str(), flags, Mode::from(0o644)) {
            Ok(file) => return Ok((name, File::from(file))),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::EXIST.into())
}
