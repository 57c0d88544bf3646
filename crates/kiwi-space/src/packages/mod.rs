//! Installed packages: `packages/{id}/{version}/`, side by side, each with its record.

mod install;
mod read;
mod record;
mod stage;
mod standing;

pub use install::{Install, Installed};
pub use read::package_of;
pub(crate) use record::{Evidence, RECORDS, Records, note_path, notes, record_path};
pub use record::{Record, RecordedFile};
pub use stage::{NewFile, Staged};

use kiwi_model::{ToolId, Version};
use rustix::fs::{Dir, FileType, FlockOperation};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::durable;
use crate::error::{PathProblem, SpaceError};
use crate::index::Odd;
use crate::kind::Item;
use crate::root::Root;
use crate::spaces::{Home, Spaces};

/// Where packages lie in a space.
pub(crate) const FOLDER: &str = "packages";
/// Packages on their way in or out. A name that starts with a dot is never a package.
pub(crate) const STAGING: &str = ".staging-";
/// What writers of packages lock.
pub(crate) const LOCK: &str = ".lock";

/// The installed packages of one space, for those who write them.
pub struct Packages<'a> {
    pub(crate) spaces: &'a Spaces,
    pub(crate) home: &'a Home,
}

impl Packages<'_> {
    /// The folder that holds a package, whether or not it is there.
    pub fn folder(&self, id: &ToolId, version: &Version) -> PathBuf {
        self.home.ai.join(Item::Package { id: id.clone(), version: version.clone() }.relative())
    }

    /// The record of an installed package.
    pub fn record_file(&self, id: &ToolId, version: &Version) -> PathBuf {
        self.home.ai.join(record_path(id, version))
    }

    /// The copy of it in the user space, where there is one.
    pub fn note_file(&self, id: &ToolId, version: &Version) -> Option<PathBuf> {
        self.spaces.user_ai().map(|user| user.join(note_path(&self.home.owner, id, version)))
    }

    /// The versions of a tool that are installed here.
    pub fn versions(&self, id: &ToolId) -> Result<Vec<Version>, SpaceError> {
        let Some(root) = Root::open(&self.home.ai)? else { return Ok(Vec::new()) };
        Ok(versions(&root, id)?.0)
    }

    /// What was written down about the packages that are here, by tool and version. One that was put there by hand has no
    /// record, and one that cannot be read counts for nothing: whoever uses the package is told.
    pub fn records(&self) -> Result<Vec<Record>, SpaceError> {
        let Some(root) = Root::open(&self.home.ai)? else { return Ok(Vec::new()) };
        let mut records = Vec::new();
        for id in ids(&root)?.0 {
            for version in versions(&root, &id)?.0 {
                let read = std::fs::read(self.record_file(&id, &version)).ok();
                records.extend(read.and_then(|bytes| serde_json::from_slice::<Record>(&bytes).ok()));
            }
        }
        Ok(records)
    }

    /// Removes a package with everything that was written down about it.
    pub fn remove(&self, id: &ToolId, version: &Version) -> Result<(), SpaceError> {
        let packages = self.home.ai.join(FOLDER);
        durable::make_folder(&packages)?;
        let root = Root::open(&self.home.ai)?.ok_or(SpaceError::NoSpace { space: self.home.space })?;
        stay_inside(&root, id)?;
        let _lock = lock(&packages)?;
        let folder = self.folder(id, version);
        let unwritable = |error| SpaceError::unwritable(&folder, error);
        let bin = tempfile::Builder::new().prefix(STAGING).tempdir_in(&packages).map_err(unwritable)?;
        // Out of sight first: half a removal must leave a package that is gone, not one without its record.
        match std::fs::rename(&folder, bin.path().join("removed")) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(unwritable(error)),
            _ => {}
        }
        durable::remove(&self.record_file(id, version))?;
        for written in self.note_file(id, version).into_iter().chain(self.standing_file(id, version)) {
            durable::remove(&written)?;
        }
        // The last version takes the folder of the id along; with others left this fails, as it should.
        let _ = std::fs::remove_dir(packages.join(id.as_str()));
        bin.close().map_err(unwritable)
    }
}

/// Refuses folders that lead out of the space: a cloned project could point them anywhere.
fn stay_inside(root: &Root, id: &ToolId) -> Result<(), SpaceError> {
    for relative in [FOLDER.to_owned(), RECORDS.to_owned(), format!("{FOLDER}/{id}")] {
        if root.stat(&relative).is_some() {
            drop(root.open_folder(&relative)?);
        }
    }
    Ok(())
}

/// One writer at a time; held until the file is closed.
fn lock(packages: &Path) -> Result<File, SpaceError> {
    let path = packages.join(LOCK);
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(|error| SpaceError::unwritable(&path, error))?;
    rustix::fs::flock(&file, FlockOperation::LockExclusive)
        .map_err(|error| SpaceError::unwritable(&path, error))?;
    Ok(file)
}

/// The versions of a package that are there, and names in its folder that are none.
pub(crate) fn versions(root: &Root, id: &ToolId) -> Result<(Vec<Version>, Vec<Odd>), SpaceError> {
    let mut versions = Vec::new();
    let mut odd = Vec::new();
    let relative = format!("{FOLDER}/{id}");
    for (name, kind) in names(root, &relative)? {
        let name = OsStr::from_bytes(&name);
        let version = name
            .to_str()
            .and_then(|text| Version::parse(text).ok().filter(|version| version.to_string() == text));
        match version {
            Some(version) if matches!(kind, FileType::Directory | FileType::Symlink | FileType::Unknown) => {
                versions.push(version);
            }
            Some(_) => {
                odd.push(Odd { path: root.absolute(&relative).join(name), problem: PathProblem::NotFolder });
            }
            None => {
                odd.push(Odd {
                    path: root.absolute(&relative).join(name),
                    problem: PathProblem::NotAVersion,
                });
            }
        }
    }
    versions.sort();
    Ok((versions, odd))
}

/// The ids that have packages, and names that are none.
pub(crate) fn ids(root: &Root) -> Result<(Vec<ToolId>, Vec<Odd>), SpaceError> {
    let mut ids = Vec::new();
    let mut odd = Vec::new();
    for (name, _) in names(root, FOLDER)? {
        let name = OsStr::from_bytes(&name);
        match name.to_str().and_then(|text| ToolId::parse(text).ok()) {
            Some(id) => ids.push(id),
            None => odd.push(Odd { path: root.absolute(FOLDER).join(name), problem: PathProblem::NotAnId }),
        }
    }
    ids.sort();
    Ok((ids, odd))
}

/// The names in a folder that do not start with a dot; none where there is no such folder.
fn names(root: &Root, relative: &str) -> Result<Vec<(Vec<u8>, FileType)>, SpaceError> {
    let folder = match root.open_folder(relative) {
        Ok(folder) => folder,
        Err(error) if error.is_absent() => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let unreadable = |error| SpaceError::unreadable(root.absolute(relative), error);
    let mut names = Vec::new();
    for entry in Dir::new(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_bytes();
        if name.first() != Some(&b'.') {
            names.push((name.to_vec(), entry.file_type()));
        }
    }
    Ok(names)
}
