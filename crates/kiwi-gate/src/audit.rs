//! The audit log: one file per session and day, each line linked to the one before.

use kiwi_model::record::{Line, Record};
use kiwi_model::{Digest, ErrorKind, Fault};
use serde_json::json;
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::request::Session;

/// How sure a line must be before the call goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// On disk: a crash of the machine cannot lose it.
    OnDisk,
    /// Written; the system will store it soon.
    Buffered,
}

/// Appends records below `logs/audit/` of a space.
#[derive(Debug)]
pub(crate) struct AuditLog {
    folder: Option<PathBuf>,
    open: Mutex<HashMap<Session, Open>>,
}

#[derive(Debug)]
struct Open {
    file: File,
    seq: u64,
    head: Option<Digest>,
    /// Folders whose entries are not known to be on disk yet.
    fresh_folders: Vec<PathBuf>,
}

impl Open {
    fn store(&mut self, text: &[u8], durability: Durability) -> std::io::Result<()> {
        self.file.write_all(text)?;
        if durability == Durability::OnDisk {
            self.file.sync_data()?;
            // The name of a new file is durable only when its folder is; after the file itself that costs little.
            for folder in self.fresh_folders.drain(..) {
                fs_err::File::open(folder)?.sync_all()?;
            }
        }
        Ok(())
    }
}

impl AuditLog {
    /// A log in this folder; without one every call is refused.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, open: Mutex::default() }
    }

    /// Appends a record. An error means that it is not in the log.
    pub fn append(&self, session: Session, record: Record, durability: Durability) -> Result<(), Fault> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = match open.entry(session) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => entry.insert(self.create(session)?),
        };
        let line =
            Line::seal(entry.seq + 1, record, entry.head).map_err(|error| refused(&error.to_string()))?;
        let mut text = serde_json::to_vec(&line).map_err(|error| refused(&error.to_string()))?;
        text.push(b'\n');
        entry.store(&text, durability).map_err(|error| refused(&error.to_string()))?;
        entry.seq += 1;
        entry.head = Some(line.hash);
        Ok(())
    }

    fn create(&self, session: Session) -> Result<Open, Fault> {
        let Some(folder) = &self.folder else {
            return Err(refused("there is neither a project nor a user space to keep it in"));
        };
        let day = folder.join(today());
        let make = || -> std::io::Result<Open> {
            // The folder that gets the file, and each folder that gets a folder.
            let missing = day.ancestors().take_while(|folder| !folder.exists());
            let fresh_folders = std::iter::once(day.as_path())
                .chain(missing.filter_map(Path::parent))
                .map(PathBuf::from)
                .collect();
            fs_err::create_dir_all(&day)?;
            let path = day.join(format!("{session}.jsonl"));
            let file = fs_err::OpenOptions::new().create_new(true).append(true).open(path)?;
            Ok(Open { file: file.into_parts().0, seq: 0, head: None, fresh_folders })
        };
        make().map_err(|error| refused(&error.to_string()))
    }
}

fn refused(why: &str) -> Fault {
    Fault::new(ErrorKind::Denied, format!("the call cannot be recorded, so it does not happen: {why}"))
        .with_hint("make `.ai/logs/audit` writable, or name a user space with KIWI_USER_SPACE")
        .with_details(json!({"reason": {"kind": "policy", "policy_id": "audit", "policy_reason": why}}))
}

/// The time of a record.
pub(crate) fn now() -> String {
    let now = jiff::Timestamp::now();
    format!("{now:.6}")
}

fn today() -> String {
    jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date().to_string()
}
