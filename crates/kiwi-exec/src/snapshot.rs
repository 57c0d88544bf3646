//! A private copy of packages for one run.

use kiwi_launcher::folder::remove_tree;
use rustix::fs::{Mode, OFlags};
use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use crate::error::ExecError;
use crate::memfd::copy_verified;
use crate::process::Package;

/// A folder that disappears with its owner.
#[derive(Debug)]
pub struct Snapshot {
    path: PathBuf,
}

impl Snapshot {
    /// Takes charge of a folder that need not exist yet.
    pub const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Makes the folder. It must not exist: an existing one belongs to somebody else.
    pub fn create(&self) -> Result<(), ExecError> {
        if let Some(around) = self.path.parent() {
            make_around(around)?;
        }
        private_folder(false).create(&self.path).map_err(ExecError::io("make a private folder for the run"))
    }

    /// Where the files of a link lie.
    pub fn folder_of(&self, link: usize) -> PathBuf {
        self.path.join(link.to_string())
    }

    /// Copies the verified files of a package.
    pub fn add(&self, package: &Package) -> Result<(), ExecError> {
        let root = self.folder_of(package.link);
        private_folder(false).create(&root).map_err(ExecError::io("make a private folder for the run"))?;
        for file in &package.files {
            let target = root.join(inside(&file.entry.path)?);
            if let Some(folder) = target.parent() {
                private_folder(true)
                    .create(folder)
                    .map_err(ExecError::io(format!("copy `{}`", file.entry.path)))?;
            }
            let mode = if file.entry.is_executable { 0o555 } else { 0o444 };
            let mut copy = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(mode)
                .open(&target)
                .map_err(ExecError::io(format!("copy `{}`", file.entry.path)))?;
            copy_verified(file, &mut copy)?;
            // The umask may have taken bits that the file is to have.
            copy.set_permissions(Permissions::from_mode(mode))
                .map_err(ExecError::io(format!("copy `{}`", file.entry.path)))?;
        }
        Ok(())
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        // Whatever the tool did to its permissions.
        remove_tree(self.path.as_path().as_os_str().as_bytes());
    }
}

/// The folder that private folders are made in, made if need be.
pub fn open_around(scratch: &Path) -> Result<OwnedFd, ExecError> {
    make_around(scratch)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(scratch, flags, Mode::empty()).map_err(io::Error::from);
    opened.map_err(ExecError::io("open the scratch folder"))
}

fn make_around(scratch: &Path) -> Result<(), ExecError> {
    private_folder(true).create(scratch).map_err(ExecError::io("make the scratch folder"))
}

/// Where the private folder of a run lies that has this name.
pub fn folder_of(scratch: &Path, name: &str) -> PathBuf {
    scratch.join(format!("{PREFIX}{name}"))
}

/// The name of a run whose private folder is called so.
pub fn name_of(folder: &str) -> Option<&str> {
    folder.strip_prefix(PREFIX)
}

const PREFIX: &str = "kiwi-run-";

/// A name nobody can guess, so nobody can have prepared it.
pub fn random_name() -> Result<String, ExecError> {
    kiwi_launcher::folder::random_name().map_err(ExecError::io("get random bytes"))
}

/// The path of a package file, if it stays inside.
pub fn inside(path: &str) -> Result<&Path, ExecError> {
    let checked = Path::new(path);
    let stays = !path.is_empty()
        && !path.contains('\0')
        && checked.components().all(|component| matches!(component, Component::Normal(_)));
    if stays { Ok(checked) } else { Err(ExecError::UnsafePath { path: path.to_owned() }) }
}

fn private_folder(recursive: bool) -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.recursive(recursive).mode(0o700);
    builder
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn paths_that_leave_the_package_are_refused() {
        for good in ["a", "a/b.py", ".hidden", "a..b"] {
            assert!(inside(good).is_ok(), "{good}");
        }
        for bad in ["", "/a", "..", "a/../b", "../a", "./a", "a\0b"] {
            assert!(inside(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_snapshot_goes_away_even_when_it_was_locked() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("s");
        let snapshot = Snapshot::new(path.clone());
        snapshot.create().unwrap();
        assert!(snapshot.create().is_err(), "an existing folder is never taken over");
        fs::create_dir_all(path.join("a/b")).unwrap();
        fs::write(path.join("a/b/c"), "").unwrap();
        std::os::unix::fs::symlink(scratch.path(), path.join("a/out")).unwrap();
        for locked in ["a/b", "a"] {
            fs::set_permissions(path.join(locked), Permissions::from_mode(0o000)).unwrap();
        }
        drop(snapshot);
        assert!(!path.exists());
        assert!(scratch.path().exists());
    }
}
