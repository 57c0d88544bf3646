//! The log against crashes, failing disks and people with an editor.

mod crash;
mod ends;
mod failure;
mod group;
mod tamper;

use kiwi_model::record::Record;
use kiwi_space::{Locations, Spaces};
use serde_json::json;
use std::path::{Path, PathBuf};

use super::check::{Finding, Verification};
use super::place::Place;
use super::verify::verify;
use super::writer::{Item, Writer};
use crate::request::Session;

/// A space with a log, and a user who vouches for it.
struct Ground {
    folder: tempfile::TempDir,
    place: Place,
}

impl Ground {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Self::place(folder.path(), "home");
        Self { folder, place }
    }

    fn place(folder: &Path, home: &str) -> Place {
        let (project, home) = (folder.join("project"), folder.join(home));
        std::fs::create_dir_all(project.join(".ai")).unwrap();
        std::fs::create_dir_all(&home).unwrap();
        let spaces = Spaces::open(Locations { project: None, cwd: project, user: Some(home) }).unwrap();
        Place::of(&spaces, None).unwrap()
    }

    fn writer(&self) -> Writer {
        Writer::new(self.place.clone())
    }

    /// Lines in groups, spread over sessions.
    fn fill(&self, sessions: &[Session], lines: usize, group: usize) {
        let mut writer = self.writer();
        let mut left: Vec<Item> = (0..lines).map(|i| item(sessions[i % sessions.len()], i)).collect();
        while !left.is_empty() {
            let mut now: Vec<Item> = left.drain(..group.min(left.len())).collect();
            writer.commit(&mut now).unwrap();
            assert!(now.iter().all(|item| item.problem.is_none()));
        }
    }

    fn verify(&self) -> Verification {
        verify(&self.place).unwrap()
    }

    #[track_caller]
    fn holds(&self, records: u64) {
        let verified = self.verify();
        assert_eq!((verified.findings.as_slice(), verified.records), ([].as_slice(), records));
    }

    /// The session files, in order.
    fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for day in std::fs::read_dir(&self.place.folder).unwrap().flatten() {
            files.extend(std::fs::read_dir(day.path()).unwrap().flatten().map(|file| file.path()));
        }
        files.sort();
        files
    }

    /// A file as findings name it.
    fn name(&self, path: &Path) -> String {
        let below = path.strip_prefix(&self.place.folder).map(|path| path.display().to_string());
        below.unwrap_or_else(|_| self.place.journal_name())
    }
}

fn record(session: Session, number: usize) -> Record {
    let at = format!("2026-01-01T00:00:{:02}Z", number % 60);
    let value = json!({
        "event": if number.is_multiple_of(2) { "enter" } else { "exit" }, "at": at, "session": session.to_string(),
        "caller": "cli:tester", "tool": "some.tool", "params": {"number": number, "text": "words of a parameter"},
    });
    serde_json::from_value(value).unwrap()
}

fn item(session: Session, number: usize) -> Item {
    Item { session, record: record(session, number).into(), problem: None }
}

/// Whether one of these is at this line, or right behind it.
fn is_located(findings: &[Finding], file: &str, line: u64) -> bool {
    findings.iter().any(|it| it.file == file && it.line.is_some_and(|at| at == line || at == line + 1))
}
