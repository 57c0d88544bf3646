//! Bringing the files of a package to the file system they will live on.

use std::collections::BTreeSet;
use std::fs::{File, Permissions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::durable;
use crate::error::{PathProblem, SpaceError};
use crate::gather::{Gatherer, MAX_BYTES, MAX_FILES, SIGNATURE};
use crate::root::{Root, is_executable, is_inside};

/// The files of a package that is to be installed.
#[derive(Debug, Clone, Copy)]
pub enum Staged<'a> {
    /// Everything in this folder.
    Folder(&'a Path),
    /// These files.
    Memory(&'a [NewFile<'a>]),
}

/// One file of a package that is to be installed.
#[derive(Debug, Clone, Copy)]
pub struct NewFile<'a> {
    /// Path inside the package, `/`-separated.
    pub path: &'a str,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Whether the owner may execute it.
    pub is_executable: bool,
}

/// Writes the files below `folder`, and syncs them and every folder.
pub(super) fn stage(files: Staged<'_>, folder: &Path, gatherer: &Gatherer<'_>) -> Result<(), SpaceError> {
    let mut stage = Stage { folder, folders: BTreeSet::new(), paths: BTreeSet::new(), bytes: 0 };
    match files {
        Staged::Memory(files) => {
            for file in files {
                stage.write(file.path, file.is_executable, &mut &*file.bytes)?;
            }
        }
        Staged::Folder(from) => stage.copy(from, gatherer)?,
    }
    for inner in stage.folders.iter().rev() {
        durable::sync_folder(&folder.join(inner))?;
    }
    durable::sync_folder(folder)
}

struct Stage<'a> {
    folder: &'a Path,
    folders: BTreeSet<String>,
    paths: BTreeSet<String>,
    bytes: u64,
}

impl Stage<'_> {
    fn copy(&mut self, from: &Path, gatherer: &Gatherer<'_>) -> Result<(), SpaceError> {
        let root = Root::open(from)?.ok_or_else(|| SpaceError::unreadable(from, io::ErrorKind::NotFound))?;
        // Only the names matter here: what counts is hashed again from the copies.
        let mut paths = Gatherer { root: &root, ..*gatherer }.walk(".")?;
        if root.stat(SIGNATURE).is_some() {
            paths.push(SIGNATURE.to_owned());
        }
        for path in paths {
            let mut opened = root.open_file(&path)?;
            self.write(&path, is_executable(&opened.stat), &mut opened.file)?;
        }
        Ok(())
    }

    fn write(&mut self, path: &str, is_executable: bool, from: &mut dyn Read) -> Result<(), SpaceError> {
        let shown = path.escape_debug().to_string();
        if !is_inside(path) || !self.paths.insert(path.to_owned()) {
            return Err(SpaceError::BadPath { path: shown, problem: PathProblem::NotInside });
        }
        if self.paths.len() > MAX_FILES {
            return Err(SpaceError::TooLarge { path: shown, what: "files", limit: MAX_FILES as u64 });
        }
        let target = self.folder.join(path);
        let mut around = path;
        while let Some((outer, _)) = around.rsplit_once('/') {
            self.folders.insert(outer.to_owned());
            around = outer;
        }
        if let Some(parent) = target.parent() {
            durable::make_folder(parent)?;
        }
        let unwritable = |error| SpaceError::unwritable(&target, error);
        let mut file = File::create_new(&target).map_err(unwritable)?;
        let mut limited = from.take(MAX_BYTES + 1 - self.bytes);
        self.bytes += io::copy(&mut limited, &mut file).map_err(unwritable)?;
        if self.bytes > MAX_BYTES {
            return Err(SpaceError::TooLarge { path: shown, what: "bytes", limit: MAX_BYTES });
        }
        file.flush().map_err(unwritable)?;
        // Whatever the umask says: the executable bit is part of the identity.
        let mode = if is_executable { 0o755 } else { 0o644 };
        file.set_permissions(Permissions::from_mode(mode)).map_err(unwritable)?;
        file.sync_all().map_err(unwritable)
    }
}
