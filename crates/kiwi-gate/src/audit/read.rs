//! Reading the log.

use kiwi_model::record::Line;
use kiwi_model::{ErrorKind, Fault};
use serde::Deserialize;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::calls::{self, AuditCall};
use super::check::Verification;
use super::place::Place;
use super::{moment, verify};
use crate::kernel::Kernel;

/// The log of a space, for those who read it.
#[derive(Debug)]
pub struct Audit {
    place: Place,
    /// Lines that should be there and could not be read.
    unreadable: AtomicUsize,
}

/// A line of the log, and where it is.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditLine {
    /// The file, below the log's folder.
    pub file: String,
    /// The line as it stands there.
    pub text: String,
    /// What it says.
    pub line: Line,
}

impl AuditLine {
    fn call(&self) -> Option<&str> {
        self.line.record.call.as_deref()
    }

    /// What it is known by: its call, or itself where it belongs to none.
    fn name(&self) -> String {
        self.call().map_or_else(|| self.line.hash.hex(), str::to_owned)
    }
}

impl Kernel {
    /// The audit log.
    pub fn audit(&self) -> Result<Audit, Fault> {
        let place = Place::of(self.spaces(), self.config.anchor.clone()).ok_or_else(|| {
            Fault::new(ErrorKind::MissingRequirement, "there is no user space that could vouch for a log")
                .with_hint("set HOME or KIWI_USER_SPACE")
        })?;
        Ok(Audit { place, unreadable: AtomicUsize::new(0) })
    }
}

impl Audit {
    /// Checks the whole log, under its lock.
    pub fn verify(&self) -> Result<Verification, Fault> {
        verify::verify(&self.place)
    }

    /// How many lines that the journal names could not be read so far. Readers show the others; `verify` says why.
    pub fn unreadable(&self) -> usize {
        self.unreadable.load(Ordering::Relaxed)
    }

    /// Every line, in the order in which they were written.
    pub fn lines(&self) -> Result<Vec<AuditLine>, Fault> {
        let entries = self.entries(0)?.0;
        let mut files = Files::new(self);
        let mut lines: Vec<AuditLine> = entries.iter().filter_map(|entry| files.named(entry)).collect();
        // Lines that the journal does not name are read too: `verify` says what they are, readers only show.
        let mut named: BTreeMap<&str, u64> = BTreeMap::new();
        for entry in &entries {
            let last = named.entry(&entry.file).or_default();
            *last = entry.seq.max(*last);
        }
        for name in self.names()? {
            let mut seq = named.get(name.as_str()).copied().unwrap_or(0) + 1;
            while let Some(text) = files.text(&name, seq) {
                lines.extend(line(&name, text));
                seq += 1;
            }
        }
        Ok(lines)
    }

    /// The last lines, and where the next ones will be found.
    pub fn tail(&self, count: usize) -> Result<(Vec<AuditLine>, u64), Fault> {
        let (entries, end) = self.entries(0)?;
        if entries.is_empty() {
            let lines = self.lines()?;
            let skip = lines.len().saturating_sub(count);
            return Ok((lines.into_iter().skip(skip).collect(), end));
        }
        let skip = entries.len().saturating_sub(count);
        let mut files = Files::new(self);
        let lines = entries.iter().skip(skip).filter_map(|entry| files.named(entry)).collect();
        Ok((lines, end))
    }

    /// The lines that were written since, and where the next ones will be found.
    pub fn since(&self, end: u64) -> Result<(Vec<AuditLine>, u64), Fault> {
        let (entries, end) = self.entries(end)?;
        let mut files = Files::new(self);
        Ok((entries.iter().filter_map(|entry| files.named(entry)).collect(), end))
    }

    /// Every call, in the order in which they began.
    pub fn calls(&self) -> Result<Vec<AuditCall>, Fault> {
        Ok(calls::of(&self.lines()?))
    }

    /// The lines of a time: RFC 3339, or a span before now.
    pub fn between(&self, since: Option<&str>, until: Option<&str>) -> Result<Vec<AuditLine>, Fault> {
        let now = jiff::Timestamp::now();
        let since = since.map(|text| moment::parse(text, now)).transpose()?;
        let until = until.map(|text| moment::parse(text, now)).transpose()?;
        let mut lines = self.lines()?;
        lines.retain(|line| {
            let Ok(at) = line.line.record.at.parse::<jiff::Timestamp>() else { return true };
            since.is_none_or(|since| at >= since) && until.is_none_or(|until| at <= until)
        });
        Ok(lines)
    }

    /// The lines of a session, or of a call: by its id, or by the hash of one of its lines. A beginning of eight
    /// characters or more will do where it is the beginning of one.
    pub fn show(&self, what: &str) -> Result<Vec<AuditLine>, Fault> {
        let mut lines = self.lines()?;
        let bare = what.strip_prefix("sha256:").unwrap_or(what);
        let is = |whole: &str| whole == bare || (bare.len() >= 8 && whole.starts_with(bare));
        let sessions = lines.iter().map(|line| &line.line.record.session).filter(|session| is(session));
        if let Some(session) = only("sessions", what, sessions)? {
            lines.retain(|line| line.line.record.session == session);
            return Ok(lines);
        }
        let is_named = |line: &&AuditLine| line.call().is_some_and(is) || is(&line.line.hash.hex());
        let names: Vec<String> = lines.iter().filter(is_named).map(AuditLine::name).collect();
        let Some(name) = only("calls", what, names.iter())? else {
            let message = format!("the log has no session and no call `{what}`");
            return Err(Fault::new(ErrorKind::NotFound, message)
                .with_hint("`kiwi audit tail --json` shows what it has"));
        };
        lines.retain(|line| line.name() == name);
        Ok(lines)
    }

    /// Whole entries of the journal from a place on, and where they end.
    fn entries(&self, from: u64) -> Result<(Vec<Named>, u64), Fault> {
        let mut bytes = Vec::new();
        match std::fs::File::open(&self.place.journal) {
            Ok(mut file) => {
                file.seek(SeekFrom::Start(from)).map_err(|error| unreadable(&error))?;
                file.read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(unreadable(&error)),
        }
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let lines = bytes.get(..whole).unwrap_or_default().split(|byte| *byte == b'\n');
        let entries = lines.filter_map(|line| serde_json::from_slice::<Named>(line).ok()).collect();
        Ok((entries, from + whole as u64))
    }

    /// The files of all days, in order.
    fn names(&self) -> Result<Vec<String>, Fault> {
        let list = |folder: &std::path::Path| -> std::io::Result<Vec<std::fs::DirEntry>> {
            match std::fs::read_dir(folder) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
                entries => entries?.collect(),
            }
        };
        let mut names = Vec::new();
        for day in list(&self.place.folder).map_err(|error| unreadable(&error))? {
            if !day.path().is_dir() {
                continue;
            }
            for file in list(&day.path()).map_err(|error| unreadable(&error))? {
                let name =
                    format!("{}/{}", day.file_name().to_string_lossy(), file.file_name().to_string_lossy());
                if file.path().extension().is_some_and(|extension| extension == "jsonl") {
                    names.push(name);
                }
            }
        }
        names.sort();
        Ok(names)
    }
}

/// The one that a beginning stands for, if there is one at all.
fn only<'a>(
    kind: &str,
    beginning: &str,
    all: impl Iterator<Item = &'a String>,
) -> Result<Option<String>, Fault> {
    let all: BTreeSet<&String> = all.collect();
    if all.len() > 1 {
        return Err(Fault::new(
            ErrorKind::Ambiguous,
            format!("{} {kind} begin with `{beginning}`", all.len()),
        )
        .with_hint("type more of it: `kiwi audit tail --json` shows them whole")
        .with_details(json!({ kind: all })));
    }
    Ok(all.first().map(|only| (*only).clone()))
}

/// What a reader needs of an entry; whether the entry is good is not for readers to say.
#[derive(Debug, Deserialize)]
struct Named {
    file: String,
    seq: u64,
}

/// Files, read when a line of them is wanted.
struct Files<'a> {
    audit: &'a Audit,
    read: HashMap<String, Vec<String>>,
}

impl<'a> Files<'a> {
    fn new(audit: &'a Audit) -> Self {
        Self { audit, read: HashMap::new() }
    }

    /// A line that the journal names: it should be there.
    fn named(&mut self, Named { file, seq }: &Named) -> Option<AuditLine> {
        let line = self.text(file, *seq).and_then(|text| line(file, text));
        if line.is_none() {
            self.audit.unreadable.fetch_add(1, Ordering::Relaxed);
        }
        line
    }

    /// A line as it stands in its file.
    fn text(&mut self, name: &str, seq: u64) -> Option<&str> {
        if !self.read.contains_key(name) {
            // A name from a journal that somebody wrote must not lead out of the folder.
            let is_inside = name.split('/').all(|part| !matches!(part, "" | "." | ".."));
            let path = self.audit.place.folder.join(name);
            let bytes = if is_inside { std::fs::read(path).ok() } else { None };
            let text = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
            self.read.insert(name.to_owned(), text.lines().map(str::to_owned).collect());
        }
        let index = usize::try_from(seq.checked_sub(1)?).ok()?;
        self.read.get(name)?.get(index).map(String::as_str)
    }
}

fn line(file: &str, text: &str) -> Option<AuditLine> {
    Some(AuditLine { file: file.to_owned(), text: text.to_owned(), line: serde_json::from_str(text).ok()? })
}

fn unreadable(error: &std::io::Error) -> Fault {
    Fault::new(ErrorKind::Internal, format!("the audit log cannot be read: {error}"))
}
