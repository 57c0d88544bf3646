//! The signals of each session: one file, one line each, on disk before anybody is answered.

use jiff::Timestamp;
use kiwi_model::{ErrorKind, Fault};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use super::request::is_session;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Signal {
    /// When.
    pub at: Timestamp,
    /// In which session.
    pub session: String,
    /// Who.
    pub caller: String,
    /// `guidance`, `stuck`, `escalate`, `checkpoint`, or a person's `answer`.
    pub signal: String,
    /// What it can be called by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What it says.
    #[serde(default)]
    pub body: Value,
}

/// A session that is stuck and waits for a person.
#[derive(Debug, Clone, PartialEq)]
pub struct StuckReview {
    /// What it can be called by.
    pub id: String,
    /// The session whose file holds it.
    pub session: String,
    /// The line.
    pub signal: Signal,
}

impl Signal {
    /// The session it is about.
    pub(super) fn about(&self) -> &str {
        self.body.get("session_id").and_then(Value::as_str).unwrap_or(&self.session)
    }
}

pub(super) struct Journal {
    folder: PathBuf,
}

impl Journal {
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn path(&self, session: &str) -> PathBuf {
        self.folder.join(format!("{session}.jsonl"))
    }

    /// Appends a line. Lines of several processes never mix, and half a line that a crash left behind spoils none but
    /// itself.
    pub fn append(&self, signal: &Signal) -> Result<(), Fault> {
        let path = self.path(&signal.session);
        let write = || -> std::io::Result<()> {
            let text = serde_json::to_string(signal)?;
            fs_err::create_dir_all(&self.folder)?;
            let is_new = !path.exists();
            let mut options = fs_err::OpenOptions::new();
            let mut file = options.read(true).append(true).create(true).open(&path)?;
            file.file().lock()?;
            let mut last = [b'\n'];
            if file.seek(SeekFrom::End(0))? > 0 {
                file.seek(SeekFrom::End(-1))?;
                file.read_exact(&mut last)?;
            }
            let gap = if last == [b'\n'] { "" } else { "\n" };
            file.write_all(format!("{gap}{text}\n").as_bytes())?;
            file.sync_data()?;
            if is_new { fs_err::File::open(&self.folder)?.sync_all() } else { Ok(()) }
        };
        write().map_err(|error| {
            Fault::new(ErrorKind::Internal, format!("the signal cannot be recorded: {error}"))
                .with_hint("make `.ai/sessions` writable")
        })
    }

    /// The signals of a session, and how many lines make no sense.
    pub fn read(&self, session: &str) -> Result<(Vec<Signal>, usize), Fault> {
        if !is_session(session) {
            return Ok((Vec::new(), 0));
        }
        let bytes = match fs_err::read(self.path(session)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((Vec::new(), 0)),
            Err(error) => return Err(unreadable(&error)),
        };
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let read: Vec<Option<Signal>> = lines.map(|line| serde_json::from_slice(line).ok()).collect();
        let broken = read.iter().filter(|line| line.is_none()).count();
        Ok((read.into_iter().flatten().collect(), broken))
    }

    /// The sessions that have signals.
    pub fn sessions(&self) -> Result<Vec<String>, Fault> {
        let entries = match fs_err::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unreadable(&error)),
        };
        let mut sessions = Vec::new();
        for entry in entries {
            let name = entry.map_err(|error| unreadable(&error))?.file_name();
            let session = name.to_str().and_then(|name| name.strip_suffix(".jsonl"));
            sessions.extend(session.filter(|session| is_session(session)).map(str::to_owned));
        }
        sessions.sort_unstable();
        Ok(sessions)
    }

    /// What waits for a person, oldest first: of each session the newest signal that was queued and not answered.
    pub fn stuck(&self) -> Result<Vec<StuckReview>, Fault> {
        let mut reviews = Vec::new();
        for session in self.sessions()? {
            let (signals, _) = self.read(&session)?;
            let answered: BTreeSet<&str> =
                signals.iter().filter(|it| it.signal == "answer").filter_map(|it| it.id.as_deref()).collect();
            let waits =
                |it: &&Signal| it.signal == "stuck" && it.body.get("queued") == Some(&Value::Bool(true));
            // An answer to the newest is an answer to those before it.
            let newest = signals.iter().rev().find(waits);
            if let Some(signal) = newest
                && let Some(id) = signal.id.clone().filter(|id| !answered.contains(id.as_str()))
            {
                reviews.push(StuckReview { id, session, signal: signal.clone() });
            }
        }
        reviews.sort_by_key(|review| review.signal.at);
        Ok(reviews)
    }

    /// Files with lines that make no sense.
    pub fn unreadable(&self) -> Result<Vec<(String, String)>, Fault> {
        let mut all = Vec::new();
        for session in self.sessions()? {
            match self.read(&session) {
                Ok((_, 0)) => {}
                Ok((_, lines)) => all.push((session, format!("{lines} lines make no sense"))),
                Err(fault) => all.push((session, fault.message)),
            }
        }
        Ok(all)
    }
}

fn unreadable(error: &std::io::Error) -> Fault {
    Fault::new(ErrorKind::Internal, format!("the signals of sessions cannot be read: {error}"))
        .with_hint("make `.ai/sessions` readable")
}
