//! What the cache holds, and removing it.

use kiwi_model::{Language, Pin};
use rustix::fs::FlockOperation;
use std::fs::{self, DirEntry, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::build::remove;
use super::{Environments, marker};
use crate::error::ExecError;
use crate::mentions::Mentions;

/// A folder of the cache that is or was to become an environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptEnvironment {
    /// Whose packages.
    pub language: Language,
    /// Where it is.
    pub folder: PathBuf,
    /// Bytes on disk.
    pub size: u64,
    /// The version of its interpreter; `None` for one that was never completed.
    pub interpreter: Option<String>,
    /// Exactly what is installed.
    pub installed: Vec<Pin>,
    /// When it was last used, to the day.
    pub last_used: SystemTime,
    /// Whether it is being built, or a running process knows about it.
    pub is_used: bool,
}

/// An interpreter whose version is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptInterpreter {
    /// The file that remembers it.
    pub file: PathBuf,
    /// What it said of itself.
    pub version: String,
    /// When it was asked.
    pub asked: SystemTime,
}

impl Environments {
    /// Every environment in the cache, unfinished ones included.
    pub fn kept(&self) -> Vec<KeptEnvironment> {
        let mentions = Mentions::now();
        let mut found = Vec::new();
        for language in Language::ALL {
            for folder in entries(&self.cache.join(language.as_str())).map(|entry| entry.path()) {
                let Ok(metadata) = fs::symlink_metadata(&folder) else { continue };
                if !metadata.is_dir() {
                    continue;
                }
                let complete = marker::peek(&folder);
                let touched =
                    fs::metadata(folder.join(marker::NAME)).or(Ok(metadata)).and_then(|it| it.modified());
                let (interpreter, installed) = complete.map_or((None, Vec::new()), |(a, b)| (Some(a), b));
                found.push(KeptEnvironment {
                    language,
                    size: size_of(&folder),
                    interpreter,
                    installed,
                    last_used: touched.unwrap_or(SystemTime::UNIX_EPOCH),
                    is_used: mentions.contain(&folder) || free(&folder).is_none(),
                    folder,
                });
            }
        }
        found
    }

    /// Removes an environment unless somebody is building it; whether it is gone.
    pub fn remove(&self, kept: &KeptEnvironment) -> Result<bool, ExecError> {
        let Some(_lock) = free(&kept.folder) else { return Ok(false) };
        // Without its marker nobody takes it for an environment, however far the removal comes.
        let _ = fs::remove_file(kept.folder.join(marker::NAME));
        remove(&kept.folder)?;
        Ok(true)
    }

    /// Every interpreter whose version is remembered.
    pub fn interpreters(&self) -> Vec<KeptInterpreter> {
        entries(&self.cache.join("interpreters"))
            .filter_map(|entry| {
                let file = entry.path();
                let version = fs::read_to_string(&file).ok()?.lines().next().unwrap_or_default().to_owned();
                Some(KeptInterpreter { asked: entry.metadata().ok()?.modified().ok()?, file, version })
            })
            .collect()
    }

    /// Forgets an interpreter; the next use asks it again.
    pub fn forget(kept: &KeptInterpreter) -> bool {
        fs::remove_file(&kept.file).is_ok()
    }
}

/// The lock of an environment, if nobody holds it. The file itself stays: removing it would let two builders in.
fn free(folder: &Path) -> Option<fs::File> {
    let mut options = OpenOptions::new();
    let file =
        options.read(true).write(true).create(true).truncate(false).open(folder.with_extension("lock"));
    let file = file.ok()?;
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).ok().map(|()| file)
}

fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

/// Bytes of all files below; links are not followed.
fn size_of(folder: &Path) -> u64 {
    entries(folder)
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => size_of(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}
