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

/// A process that stays serves any number of sessions; files of more than this many are not kept open.
const MOST_OPEN: usize = 32;

/// Appends records below `logs/audit/` of a space.
#[derive(Debug)]
pub(crate) struct AuditLog {
    folder: Option<PathBuf>,
    sessions: Mutex<HashMap<Session, Log>>,
}

/// The log of one session.
#[derive(Debug)]
struct Log {
    path: PathBuf,
    /// Closed while others are written; opened again when it is needed.
    file: Option<File>,
    seq: u64,
    head: Option<Digest>,
    /// Folders whose entries are not known to be on disk yet.
    fresh_folders: Vec<PathBuf>,
}

impl Log {
    fn store(&mut self, text: &[u8], durability: Durability) -> std::io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            closed @ None => {
                let again = fs_err::OpenOptions::new().append(true).open(&self.path)?;
                closed.insert(again.into_parts().0)
            }
        };
        file.write_all(text)?;
        if durability == Durability::OnDisk {
            file.sync_data()?;
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
        Self { folder, sessions: Mutex::default() }
    }

    /// Appends a record. An error means that it is not in the log.
    pub fn append(&self, session: Session, record: Record, durability: Durability) -> Result<(), Fault> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        close_some(&mut sessions, session);
        let entry = match sessions.entry(session) {
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

    fn create(&self, session: Session) -> Result<Log, Fault> {
        let Some(folder) = &self.folder else {
            return Err(refused("there is neither a project nor a user space to keep it in"));
        };
        let day = folder.join(today());
        let make = || -> std::io::Result<Log> {
            // The folder that gets the file, and each folder that gets a folder.
            let missing = day.ancestors().take_while(|folder| !folder.exists());
            let fresh_folders = std::iter::once(day.as_path())
                .chain(missing.filter_map(Path::parent))
                .map(PathBuf::from)
                .collect();
            fs_err::create_dir_all(&day)?;
            let path = day.join(format!("{session}.jsonl"));
            let file = fs_err::OpenOptions::new().create_new(true).append(true).open(&path)?;
            Ok(Log { path, file: Some(file.into_parts().0), seq: 0, head: None, fresh_folders })
        };
        make().map_err(|error| refused(&error.to_string()))
    }
}

/// Makes room for the file of one session, if there are many. Which others are closed does not matter: opening one again
/// costs less than what is written to it.
fn close_some(sessions: &mut HashMap<Session, Log>, wanted: Session) {
    if sessions.get(&wanted).is_some_and(|log| log.file.is_some()) {
        return;
    }
    let is_open = |log: &&mut Log| log.file.is_some();
    let open = sessions.values_mut().filter(is_open).count();
    for log in sessions.values_mut().filter(is_open).take((open + 1).saturating_sub(MOST_OPEN)) {
        log.file = None;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_sessions_keep_few_files_open_and_each_log_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let log = AuditLog::new(Some(folder.path().to_owned()));
        let sessions: Vec<Session> = (0..100).map(|_| Session::start()).collect();
        for round in 1..=2 {
            for session in &sessions {
                let record = json!({"event": "enter", "at": now(), "session": session.to_string(), "caller": "c", "tool": "t"});
                let record = serde_json::from_value(record).unwrap();
                log.append(*session, record, Durability::Buffered).unwrap();
            }
            let all = log.sessions.lock().unwrap();
            assert!(all.values().filter(|log| log.file.is_some()).count() <= MOST_OPEN);
            assert!(all.len() == 100 && all.values().all(|log| log.seq == round));
        }
        let path = log.sessions.lock().unwrap()[&sessions[0]].path.clone();
        let lines: Vec<Line> = std::fs::read_to_string(path)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1].prev, Some(lines[0].hash));
    }
}
