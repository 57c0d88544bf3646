//! Sessions as a person sees them: what was called, what was denied, what was signalled.

use kiwi_model::{ErrorKind, Explain as _, Fault};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry::Vacant;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use super::Help;
use super::journal::Signal;
use super::request::is_session;

/// A session in one line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SessionSummary {
    /// Its name.
    pub session: String,
    /// Who called, or signalled.
    pub caller: Option<String>,
    /// When it was first heard of.
    pub first: Option<String>,
    /// When it was last heard of.
    pub last: Option<String>,
    /// Calls: those that ran, were denied, or could not be planned.
    pub calls: u64,
    /// Calls that were denied.
    pub denials: u64,
    /// Help signals.
    pub signals: u64,
    /// Lines that make no sense.
    pub unreadable: u64,
}

/// A call of a session, as the audit log tells it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallLine {
    /// When.
    pub at: String,
    /// Which tool.
    pub tool: String,
    /// `enter`, `denied` or `request`.
    pub event: String,
    /// What the gate said.
    pub decision: Value,
    /// Why it did not start, where that is known.
    pub result: Value,
}

/// A session whole.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionDetail {
    /// In one line.
    #[serde(flatten)]
    pub summary: SessionSummary,
    /// Its calls.
    pub call_list: Vec<CallLine>,
    /// Its signals, and the answers to them.
    pub signal_list: Vec<Signal>,
}

/// What is read of a line of the audit log.
#[derive(Deserialize)]
struct AuditLine {
    at: String,
    caller: String,
    event: String,
    #[serde(default)]
    tool: String,
    #[serde(default)]
    decision: Value,
    #[serde(default)]
    result: Value,
}

impl Help<'_> {
    /// Every session that made a call or gave a signal, oldest first.
    pub fn sessions(&self) -> Result<Vec<SessionSummary>, Fault> {
        let files = self.audit_files()?;
        let mut all: BTreeMap<String, SessionSummary> = BTreeMap::new();
        for name in self.journal.sessions()?.into_iter().chain(files.keys().cloned()) {
            let of_session = files.get(&name).map_or(&[] as &[PathBuf], Vec::as_slice);
            if let Vacant(place) = all.entry(name) {
                let detail = self.read(place.key(), of_session)?;
                place.insert(detail.summary);
            }
        }
        let mut all: Vec<SessionSummary> = all.into_values().collect();
        all.sort_by(|a, b| a.first.cmp(&b.first));
        Ok(all)
    }

    /// One session, by its name or the beginning of it.
    pub fn session(&self, name: &str) -> Result<SessionDetail, Fault> {
        let files = self.audit_files()?;
        let mut known = self.journal.sessions()?;
        known.extend(files.keys().cloned());
        known.retain(|it| !name.is_empty() && it.starts_with(name));
        known.sort_unstable();
        known.dedup();
        let exact = known.iter().find(|it| *it == name);
        match (exact, known.as_slice()) {
            (Some(session), _) | (None, [session]) => {
                self.read(session, files.get(session).map_or(&[], Vec::as_slice))
            }
            (None, []) => Err(Fault::new(ErrorKind::NotFound, format!("no session is called `{name}`"))
                .with_hint("`kiwi sessions` lists them")),
            (None, several) => Err(Fault::new(
                ErrorKind::Ambiguous,
                format!("{} sessions begin with `{name}`", several.len()),
            )
            .with_hint("type more of it")
            .with_details(json!({"sessions": several}))),
        }
    }

    fn read(&self, session: &str, files: &[PathBuf]) -> Result<SessionDetail, Fault> {
        let mut summary = SessionSummary { session: session.to_owned(), ..SessionSummary::default() };
        let mut calls = Vec::new();
        for file in files {
            let unreadable = |error: std::io::Error| {
                Fault::new(ErrorKind::Internal, format!("the audit log cannot be read: {error}"))
            };
            let lines = BufReader::new(fs_err::File::open(file).map_err(unreadable)?).split(b'\n');
            for line in lines {
                let line = line.map_err(unreadable)?;
                match serde_json::from_slice::<AuditLine>(&line) {
                    Ok(line) => summary.add(line, &mut calls),
                    Err(_) => summary.unreadable += u64::from(!line.is_empty()),
                }
            }
        }
        let (signals, broken) = self.journal.read(session)?;
        summary.unreadable += u64::try_from(broken).unwrap_or(0);
        for signal in signals.iter().filter(|it| it.signal != "answer") {
            summary.signals += 1;
            summary.hear(&signal.caller, &format!("{:.6}", signal.at));
        }
        calls.sort_by(|a, b| a.at.cmp(&b.at));
        Ok(SessionDetail { summary, call_list: calls, signal_list: signals })
    }

    /// The files of the audit log, by session: one for each day.
    fn audit_files(&self) -> Result<BTreeMap<String, Vec<PathBuf>>, Fault> {
        let folder = self.spaces.audit_dir().map_err(|error| error.fault())?;
        let mut files: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        for day in entries(&folder)?.into_iter().filter(|day| day.is_dir()) {
            for file in entries(&day)? {
                let name = file.file_name().and_then(|name| name.to_str()?.strip_suffix(".jsonl"));
                if let Some(session) = name.filter(|name| is_session(name)) {
                    files.entry(session.to_owned()).or_default().push(file.clone());
                }
            }
        }
        Ok(files)
    }
}

impl SessionSummary {
    fn add(&mut self, line: AuditLine, calls: &mut Vec<CallLine>) {
        self.hear(&line.caller, &line.at);
        if matches!(line.event.as_str(), "enter" | "denied" | "request") {
            self.calls += 1;
            self.denials += u64::from(line.event == "denied");
            let AuditLine { at, tool, event, decision, result, .. } = line;
            calls.push(CallLine { at, tool, event, decision, result });
        }
    }

    fn hear(&mut self, caller: &str, at: &str) {
        self.caller.get_or_insert_with(|| caller.to_owned());
        if self.first.as_deref().is_none_or(|first| at < first) {
            self.first = Some(at.to_owned());
        }
        if self.last.as_deref().is_none_or(|last| at > last) {
            self.last = Some(at.to_owned());
        }
    }
}

/// What is in a folder, sorted; nothing where there is none.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Fault> {
    let unreadable = |error: std::io::Error| {
        Fault::new(ErrorKind::Internal, format!("the audit log cannot be read: {error}"))
            .with_hint("make `.ai/logs/audit` readable")
    };
    let listed = match fs_err::read_dir(folder) {
        Ok(listed) => listed,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(error)),
    };
    let mut all = Vec::new();
    for entry in listed {
        all.push(entry.map_err(unreadable)?.path());
    }
    all.sort_unstable();
    Ok(all)
}
