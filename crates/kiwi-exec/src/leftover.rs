//! Private copies of packages that outlived their call: only a machine or a supervisor that was killed leaves one.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::SystemTime;

use crate::mentions::Mentions;
use crate::process::Launcher;
use crate::snapshot::{Snapshot, name_of};

/// A private copy that lies in the scratch folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptSnapshot {
    /// The folder.
    pub folder: PathBuf,
    /// When it was made.
    pub made: SystemTime,
    /// Whether a running process knows about it.
    pub is_used: bool,
}

impl Launcher {
    /// This user's private copies in the scratch folder, running calls' included.
    pub fn snapshots(&self) -> Vec<KeptSnapshot> {
        let user = rustix::process::getuid().as_raw();
        let mut mentions = None;
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.scratch).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_ours = name
                .to_str()
                .and_then(name_of)
                .is_some_and(|mark| mark.len() == 32 && mark.bytes().all(|byte| byte.is_ascii_hexdigit()));
            let Ok(metadata) = entry.metadata() else { continue };
            let Ok(made) = metadata.modified() else { continue };
            if is_ours && metadata.is_dir() && metadata.uid() == user {
                let folder = entry.path();
                let is_used = mentions.get_or_insert_with(Mentions::now).contain(&folder);
                found.push(KeptSnapshot { folder, made, is_used });
            }
        }
        found
    }

    /// Removes a private copy; whether it is gone.
    pub fn remove_snapshot(kept: &KeptSnapshot) -> bool {
        drop(Snapshot::new(kept.folder.clone()));
        !kept.folder.exists()
    }
}
