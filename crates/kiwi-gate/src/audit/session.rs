//! The file of one session and day.

use kiwi_model::Digest;
use kiwi_model::record::Line;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::request::Session;

/// A process that stays serves any number of sessions; files of more than this many are not kept open.
pub(super) const MOST_OPEN: usize = 32;

/// Where a file ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct End {
    /// Number of the last line.
    pub seq: u64,
    /// Its hash.
    pub hash: Option<Digest>,
    /// Length in bytes.
    pub len: u64,
}

/// The file that a session writes today.
#[derive(Debug)]
pub(super) struct SessionFile {
    /// Its name below the log's folder.
    pub name: String,
    day: String,
    path: PathBuf,
    /// Closed while others are written; opened again when it is needed.
    handle: Option<File>,
    /// Where it ends.
    pub end: End,
}

impl SessionFile {
    fn open(folder: &Path, session: Session, day: &str) -> std::io::Result<Self> {
        fs_err::create_dir_all(folder.join(day))?;
        let name = format!("{day}/{session}.jsonl");
        let path = folder.join(&name);
        let mut file = fs_err::OpenOptions::new().read(true).append(true).create(true).open(&path)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let end = match text.lines().last() {
            None => End::default(),
            Some(last) => {
                let line = Line::parse(last).ok().filter(|_| text.ends_with('\n'));
                let line =
                    line.ok_or_else(|| std::io::Error::other(format!("`{name}` is not as it was left")))?;
                End { seq: line.seq, hash: Some(line.hash), len: text.len() as u64 }
            }
        };
        Ok(Self { name, day: day.to_owned(), path, handle: Some(file.into_parts().0), end })
    }

    fn handle(&mut self) -> std::io::Result<&mut File> {
        match &mut self.handle {
            Some(file) => Ok(file),
            closed @ None => {
                let again = fs_err::OpenOptions::new().append(true).open(&self.path)?;
                Ok(closed.insert(again.into_parts().0))
            }
        }
    }

    /// Writes lines behind the last.
    pub fn append(&mut self, text: &str) -> std::io::Result<()> {
        self.handle()?.write_all(text.as_bytes())
    }

    /// Takes back what was written behind the end.
    pub fn cut(&mut self) -> std::io::Result<()> {
        let len = self.end.len;
        self.handle()?.set_len(len)
    }
}

/// The files of all sessions.
#[derive(Debug, Default)]
pub(super) struct SessionFiles(HashMap<Session, SessionFile>);

impl SessionFiles {
    /// The file a session writes on a day. A session that lives past midnight goes on in another; a clock that goes
    /// back does not take it back.
    pub fn of(&mut self, folder: &Path, session: Session, day: &str) -> std::io::Result<&mut SessionFile> {
        self.close_some(session);
        match self.0.entry(session) {
            std::collections::hash_map::Entry::Occupied(entry) => {
                let file = entry.into_mut();
                if file.day.as_str() < day {
                    *file = SessionFile::open(folder, session, day)?;
                }
                Ok(file)
            }
            std::collections::hash_map::Entry::Vacant(entry) => {
                Ok(entry.insert(SessionFile::open(folder, session, day)?))
            }
        }
    }

    /// The file of a session that has one.
    pub fn get(&mut self, session: Session) -> Option<&mut SessionFile> {
        self.0.get_mut(&session)
    }

    /// Forgets what is known of them.
    pub fn forget(&mut self) {
        self.0.clear();
    }

    /// Makes room for the file of one session, if there are many. Which others are closed does not matter: opening one
    /// again costs less than what is written to it.
    fn close_some(&mut self, wanted: Session) {
        if self.0.get(&wanted).is_some_and(|file| file.handle.is_some()) {
            return;
        }
        let is_open = |file: &&mut SessionFile| file.handle.is_some();
        let open = self.0.values_mut().filter(is_open).count();
        for file in self.0.values_mut().filter(is_open).take((open + 1).saturating_sub(MOST_OPEN)) {
            file.handle = None;
        }
    }

    #[cfg(test)]
    pub fn open_ones(&self) -> usize {
        self.0.values().filter(|file| file.handle.is_some()).count()
    }
}
