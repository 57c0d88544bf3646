//! Installing a package: staged, hashed, noted, recorded, and only then put in its place.

use kiwi_chain::Tool;
use kiwi_model::{Integrity, ToolId, Version};
use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::stage::stage;
use super::{Evidence, FOLDER, Packages, Record, RecordedFile, STAGING, Staged, lock, stay_inside};
use crate::durable;
use crate::error::{SpaceError, show};
use crate::gather::Gatherer;
use crate::kind::Item;
use crate::loader::main_of_package;
use crate::root::Root;

/// Staging folders this old belong to nobody any more.
const ABANDONED: Duration = Duration::from_hours(24);

/// What to install.
#[derive(Debug, Clone, Copy)]
pub struct Install<'a> {
    /// Which tool.
    pub id: &'a ToolId,
    /// Which version; the manifest must give the same.
    pub version: &'a Version,
    /// Its files.
    pub files: Staged<'a>,
    /// Where they came from, for the record.
    pub source: &'a str,
    /// When, RFC 3339, for the record.
    pub at: &'a str,
    /// What the files must hash to, where somebody says so.
    pub expected: Option<Integrity>,
}

/// A package that was installed.
#[derive(Debug, Clone)]
pub struct Installed {
    /// The tool, as a call will find it.
    pub tool: Arc<Tool>,
    /// Its folder.
    pub folder: PathBuf,
    /// What was written down.
    pub record: Record,
    /// Worth saying, not worth stopping.
    pub warnings: Vec<String>,
}

impl Packages<'_> {
    /// Installs a package, replacing the same version if it is there.
    ///
    /// The note is written first, then the record, then the folder is renamed into place: a crash in between leaves a
    /// package that is refused or absent, never one that passes as put there by hand.
    pub fn install(&self, install: &Install<'_>) -> Result<Installed, SpaceError> {
        let Install { id, version, .. } = *install;
        let folder = self.folder(id, version);
        if id.is_reserved() {
            return Err(SpaceError::Reserved { id: id.clone(), space: self.home.space, path: show(&folder) });
        }
        let packages = self.home.ai.join(FOLDER);
        durable::make_folder(&packages)?;
        let root = Root::open(&self.home.ai)?.ok_or(SpaceError::NoSpace { space: self.home.space })?;
        stay_inside(&root, id)?;
        let staging = tempfile::Builder::new()
            .prefix(STAGING)
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .tempdir_in(&packages)
            .map_err(|error| SpaceError::unwritable(&packages, error))?;
        let staged = self.hash_staged(install, &root, staging.path())?;
        let record = Record {
            tool_id: id.clone(),
            version: version.clone(),
            integrity: staged.integrity,
            files: recorded_files(&staged, staging.path())?,
            source: install.source.to_owned(),
            installed_at: install.at.to_owned(),
        };
        let lock = lock(&packages)?;
        clean(&packages);
        self.commit(&record, staging.path(), &folder)?;
        let item = Item::Package { id: id.clone(), version: version.clone() };
        let tool = self.spaces.load_item(self.home, &item)?;
        drop(lock);
        // What was replaced, if anything, now lies in the staging folder.
        let leftovers = staging.close();
        let mut warnings = Vec::new();
        if self.note_file(id, version).is_none() {
            warnings.push(format!("{id}@{version} could not be noted: there is no user space"));
        }
        if let Err(error) = leftovers
            && error.kind() != std::io::ErrorKind::NotFound
        {
            warnings.push(format!("the replaced version could not be removed: {error}"));
        }
        Ok(Installed { tool, folder, record, warnings })
    }

    /// Writes the files and reads them back: what is recorded is what lies there.
    fn hash_staged(&self, install: &Install<'_>, root: &Root, staging: &Path) -> Result<Tool, SpaceError> {
        let Install { id, version, files, expected, .. } = *install;
        let caches = self.spaces.caches();
        let gatherer = Gatherer { root, large: &caches.large, counters: &caches.counters };
        stage(files, staging, &gatherer)?;
        let item = Item::Package { id: id.clone(), version: version.clone() };
        let name = staging.file_name().unwrap_or_default().to_string_lossy();
        let relative = format!("{FOLDER}/{name}");
        let files = gatherer.folder(&relative)?;
        let main = main_of_package(id, &files).1;
        let shown = show(&self.home.ai.join(format!("{}/{main}", item.relative())));
        let tool = self.spaces.with_loader(self.home, root, |loader| {
            loader.build(&item, &relative, shown, files, &Evidence::default())
        })?;
        match expected {
            Some(expected) if expected != tool.integrity => {
                Err(SpaceError::NotAsExpected { tool: tool.name(), computed: tool.integrity, expected })
            }
            _ => Ok(tool),
        }
    }

    fn commit(&self, record: &Record, staging: &Path, folder: &Path) -> Result<(), SpaceError> {
        let (id, version) = (&record.tool_id, &record.version);
        let record_file = self.record_file(id, version);
        let mut text = serde_json::to_string_pretty(record)
            .map_err(|error| SpaceError::unwritable(&record_file, error))?;
        text.push('\n');
        let written: Vec<PathBuf> = self.note_file(id, version).into_iter().chain([record_file]).collect();
        let before: Vec<Option<Vec<u8>>> = written.iter().map(|path| std::fs::read(path).ok()).collect();
        let result = written
            .iter()
            .try_for_each(|path| durable::write(path, text.as_bytes()))
            .and_then(|()| put_in_place(staging, folder));
        if result.is_err() {
            // Nothing was installed, so nothing should say so. Best effort: what remains refuses, it does not let pass.
            for (path, before) in written.iter().zip(before) {
                let _ = before.map_or_else(|| durable::remove(path), |bytes| durable::write(path, &bytes));
            }
        }
        result
    }
}

/// Renames a staged folder to where it belongs. What was there changes places with it.
fn put_in_place(staging: &Path, folder: &Path) -> Result<(), SpaceError> {
    let unwritable = |error: std::io::Error| SpaceError::unwritable(folder, error);
    let parent = folder.parent().unwrap_or(folder);
    durable::make_folder(parent)?;
    let exchanged = match rustix::fs::renameat_with(CWD, staging, CWD, folder, RenameFlags::EXCHANGE) {
        Ok(()) => true,
        Err(Errno::NOENT | Errno::NOSYS | Errno::INVAL | Errno::OPNOTSUPP) => false,
        Err(error) => return Err(unwritable(error.into())),
    };
    if !exchanged {
        let aside = staging.with_extension("replaced");
        match std::fs::rename(folder, &aside) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(unwritable(error)),
            _ => {}
        }
        if let Err(error) = std::fs::rename(staging, folder) {
            let _ = std::fs::rename(&aside, folder);
            return Err(unwritable(error));
        }
        let _ = std::fs::remove_dir_all(&aside);
    }
    durable::sync_folder(parent)?;
    durable::sync_folder(parent.parent().unwrap_or(parent))
}

fn recorded_files(tool: &Tool, staging: &Path) -> Result<Vec<RecordedFile>, SpaceError> {
    let size = |path: &str| {
        let path = staging.join(path);
        std::fs::metadata(&path).map(|found| found.len()).map_err(|error| SpaceError::unreadable(path, error))
    };
    let files = tool
        .files
        .iter()
        .map(|file| Ok(RecordedFile { size: size(&file.entry.path)?, entry: file.entry.clone() }));
    files.collect()
}

/// Removes what a crash left behind.
fn clean(packages: &Path) {
    let is_abandoned = |entry: &std::fs::DirEntry| {
        let age = entry
            .metadata()
            .and_then(|found| found.modified())
            .ok()
            .and_then(|modified| modified.elapsed().ok());
        entry.file_name().to_string_lossy().starts_with(STAGING) && age.is_some_and(|age| age > ABANDONED)
    };
    for entry in std::fs::read_dir(packages).into_iter().flatten().flatten().filter(is_abandoned) {
        let _ = std::fs::remove_dir_all(entry.path());
    }
}
