//! Writing groups of records, under the lock.

use kiwi_model::record::{JournalEntry, Line, Record};
use kiwi_model::{Digest, Explain as _};
use kiwi_space::{KeyPurpose, UserKey};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::anchor;
use super::head::{Base, Head, Kept, Tail, entry_line, signed_line};
use super::place::Place;
use super::recover;
use super::session::{End, SessionFile, SessionFiles};
use super::signed::Signed;
use crate::request::Session;

/// So many lines are kept in the head before they are settled.
const MOST_KEPT: u64 = 256;
/// Or so many bytes.
const MOST_BYTES: u64 = 1 << 20;
/// More than a line and its entry usually take.
const USUAL_LINE: usize = 4096;
/// What the head says behind a group that is in its files.
const DONE: &str = "done\n";

/// Whether to wait for the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// Until it is free.
    Waits,
    /// Not at all.
    Tries,
}

/// How much of what the head has kept is to be put where it belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// Everything since the checkpoint.
    All,
    /// What is not known to be there.
    Open,
}

/// A record on its way, and why it did not get there.
#[derive(Debug)]
pub(super) struct Item {
    pub session: Session,
    /// Shared with whoever goes on from it, so that a call is described once.
    pub record: Arc<Record>,
    pub problem: Option<String>,
}

/// What is known of the head from the last time it was looked at.
#[derive(Debug)]
struct Seen {
    file: File,
    inode: u64,
    head: Head,
    /// The last group is in its files, and the head does not say so yet: the next write does.
    owes_done: bool,
}

impl Seen {
    /// What is owed to the head.
    fn owed(&self) -> &'static str {
        if self.owes_done { DONE } else { "" }
    }
}

/// A file by which processes exclude each other, and which file that is.
#[derive(Debug)]
struct Journal {
    file: File,
    identity: (u64, u64),
    /// How long it was when it was locked.
    len: u64,
}

/// Writes the log of one space.
#[derive(Debug)]
pub(super) struct Writer {
    place: Place,
    /// Open as long as this is; locked while a group is written.
    journal: Option<Journal>,
    is_held: bool,
    seen: Option<Seen>,
    files: SessionFiles,
    boot: String,
    key: Option<UserKey>,
    /// A sync failed: what was written may be gone although it can still be read.
    is_doubtful: bool,
    has_written: bool,
    /// The day a line belongs to, and how a file is made to last: replaced by tests.
    pub day: fn() -> String,
    pub sync: fn(&File) -> std::io::Result<()>,
    /// How long groups have waited for the disk, in nanoseconds.
    pub waited: Arc<AtomicU64>,
}

impl Writer {
    /// For a place; nothing is touched yet.
    pub fn new(place: Place) -> Self {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        Self {
            place,
            journal: None,
            is_held: false,
            seen: None,
            files: SessionFiles::default(),
            boot: boot.trim().to_owned(),
            key: None,
            is_doubtful: false,
            has_written: false,
            day: super::today,
            sync: File::sync_data,
            waited: Arc::default(),
        }
    }

    /// Takes the lock; `false` if somebody else has it and this is not to wait.
    pub fn hold(&mut self, patience: Patience) -> std::io::Result<bool> {
        while !self.is_held {
            let mut journal = match self.journal.take() {
                Some(journal) => journal,
                None => self.open_journal()?,
            };
            match patience {
                Patience::Waits => journal.file.lock()?,
                Patience::Tries => match journal.file.try_lock() {
                    Ok(()) => {}
                    Err(TryLockError::WouldBlock) => {
                        self.journal = Some(journal);
                        return Ok(false);
                    }
                    Err(TryLockError::Error(error)) => return Err(error),
                },
            }
            // A file that is no longer there by its name excludes nobody.
            let named = std::fs::metadata(&self.place.journal).ok();
            if let Some(named) = named.filter(|named| (named.dev(), named.ino()) == journal.identity) {
                journal.len = named.len();
                self.journal = Some(journal);
                self.is_held = true;
            }
        }
        Ok(true)
    }

    fn open_journal(&self) -> std::io::Result<Journal> {
        fs_err::create_dir_all(&self.place.folder)?;
        let mut options = fs_err::OpenOptions::new();
        let file = options.read(true).append(true).create(true).open(&self.place.journal)?.into_parts().0;
        let own = file.metadata()?;
        Ok(Journal { file, identity: (own.dev(), own.ino()), len: own.len() })
    }

    /// Gives the lock back.
    pub fn release(&mut self) {
        self.is_held = false;
        if self.journal.as_ref().is_some_and(|journal| journal.file.unlock().is_err()) {
            self.journal = None;
        }
    }

    /// Writes a group: first into the head, synced, then into the files. After an error nothing of it is there, or all
    /// of it will be put there by whoever writes next.
    pub fn commit(&mut self, group: &mut [Item]) -> Result<(), String> {
        let result = match self.hold(Patience::Waits) {
            Ok(_) => self.write(group),
            Err(error) => Err(error.to_string()),
        };
        if result.is_err() {
            self.seen = None;
            self.files.forget();
        }
        self.release();
        result
    }

    fn write(&mut self, group: &mut [Item]) -> Result<(), String> {
        anchor::reach(self.place.anchor.as_deref())?;
        self.refresh()?;
        let draft = self.draft(group)?;
        if draft.kept.is_empty() {
            return Ok(());
        }
        let Some(seen) = &mut self.seen else { return Err("the head is not open".into()) };
        let before = seen.head.len;
        if let Err(error) = seen.file.write_all(draft.head.as_bytes()) {
            let _ = seen.file.set_len(before);
            return Err(error.to_string());
        }
        let begun = Instant::now();
        let synced = (self.sync)(&seen.file);
        self.waited.fetch_add(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(0), Ordering::Relaxed);
        if let Err(error) = synced {
            // Which of it is on disk nobody knows, and a second sync that succeeds would not tell.
            self.is_doubtful = true;
            let _ = seen.file.set_len(before);
            return Err(error.to_string());
        }
        if let Err(error) = self.project(&draft) {
            self.take_back(&draft, before);
            return Err(error.to_string());
        }
        self.has_written = true;
        for (session, part) in &draft.parts {
            if let Some(file) = self.files.get(*session) {
                file.end = part.end;
            }
        }
        let Some(seen) = &mut self.seen else { return Err("the head is not open".into()) };
        seen.head.kept.extend(draft.kept);
        seen.head.done = seen.head.kept.len();
        seen.head.len += draft.head.len() as u64;
        seen.owes_done = true;
        let kept = seen.head.n() - seen.head.base.n;
        if (kept >= MOST_KEPT || seen.head.len >= MOST_BYTES) && self.checkpoint().is_err() {
            // The group itself is on disk. The next one has to find out what is wrong.
            self.is_doubtful = true;
            self.seen = None;
        }
        Ok(())
    }

    /// Seals the records of a group. One that cannot be sealed does not keep the others from being written.
    fn draft(&mut self, group: &mut [Item]) -> Result<Draft, String> {
        let Some(seen) = &self.seen else { return Err("the head is not open".into()) };
        let (mut n, mut prev) = (seen.head.n(), seen.head.hash());
        let journal_len = self.journal.as_ref().map_or(0, |journal| journal.len);
        let mut head = String::with_capacity(group.len() * USUAL_LINE);
        head.push_str(seen.owed());
        let mut draft = Draft { head, journal_len, ..Draft::default() };
        let day = (self.day)();
        for item in group {
            let file = match self.files.of(&self.place.folder, item.session, &day) {
                Ok(file) => file,
                Err(error) => {
                    item.problem = Some(error.to_string());
                    continue;
                }
            };
            let Part { lines, end } = draft
                .parts
                .entry(item.session)
                .or_insert_with(|| Part { lines: String::new(), end: file.end });
            let sealed = match Line::seal(end.seq + 1, &item.record, end.hash) {
                Ok(sealed) => sealed,
                Err(error) => {
                    item.problem = Some(error.to_string());
                    continue;
                }
            };
            n += 1;
            let entry = JournalEntry {
                n,
                file: file.name.clone(),
                seq: end.seq + 1,
                at: end.len,
                line: sealed.hash,
                text: sealed.written,
                prev,
                hash: sealed.hash,
            };
            let (entry, written) = entry.sealed();
            *end =
                End { seq: entry.seq, hash: Some(sealed.hash), len: end.len + sealed.text.len() as u64 + 1 };
            prev = Some(entry.hash);
            entry_line(&mut draft.head, &written, &sealed.text);
            for (out, line) in [(&mut draft.journal, written), (lines, sealed.text)] {
                // Mostly there is one, and nothing to copy.
                if out.is_empty() {
                    *out = line;
                } else {
                    out.push_str(&line);
                }
                out.push('\n');
            }
            draft.kept.push(Kept { entry, text: None });
        }
        Ok(draft)
    }

    /// Puts the lines where they are read.
    fn project(&mut self, draft: &Draft) -> std::io::Result<()> {
        for (session, part) in &draft.parts {
            let file =
                self.files.get(*session).ok_or_else(|| std::io::Error::other("a session has no file"))?;
            file.append(&part.lines)?;
        }
        let journal =
            self.journal.as_mut().ok_or_else(|| std::io::Error::other("the journal is not open"))?;
        journal.file.write_all(draft.journal.as_bytes())
    }

    /// Takes a group back that did not get into its files, the head last: what is in a file is always in the head. What
    /// cannot be taken back is completed by whoever writes next.
    fn take_back(&mut self, draft: &Draft, before: u64) {
        let sessions = draft
            .parts
            .keys()
            .try_for_each(|session| self.files.get(*session).map_or(Ok(()), SessionFile::cut));
        let journal = self.journal.as_ref().map_or(Ok(()), |journal| journal.file.set_len(draft.journal_len));
        if sessions.is_ok()
            && journal.is_ok()
            && let Some(seen) = &self.seen
        {
            let taken = seen.file.set_len(before).and_then(|()| (self.sync)(&seen.file));
            self.is_doubtful |= taken.is_err();
        }
    }

    /// Looks at the head again: another process may have written, or been killed while it did.
    pub fn refresh(&mut self) -> Result<(), String> {
        let text = |error: std::io::Error| error.to_string();
        match std::fs::metadata(&self.place.head) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => self.begin()?,
            Err(error) => return Err(unreadable(error)),
            Ok(now) => match &mut self.seen {
                Some(seen) if seen.inode == now.ino() && now.len() == seen.head.len => {}
                Some(seen) if seen.inode == now.ino() && now.len() > seen.head.len => {
                    let mut more = Vec::new();
                    seen.file.seek(SeekFrom::Start(seen.head.len)).map_err(text)?;
                    seen.file.read_to_end(&mut more).map_err(text)?;
                    seen.head.feed(&more, Tail::Whole)?;
                    // Whoever wrote it saw to what was open before.
                    seen.owes_done = false;
                    // The half of a line that somebody was writing when he was killed.
                    if now.len() > seen.head.len {
                        seen.file.set_len(seen.head.len).map_err(text)?;
                    }
                }
                _ => self.load().map_err(unreadable)?,
            },
        }
        let Some(seen) = &self.seen else { return Err("the head is not open".into()) };
        if self.is_doubtful || !seen.head.is_of(&self.boot) {
            self.files.forget();
            self.restore(Extent::All)?;
            self.checkpoint()?;
            self.is_doubtful = false;
        } else if seen.head.done < seen.head.kept.len() {
            self.files.forget();
            self.restore(Extent::Open)?;
        }
        Ok(())
    }

    /// Which boot of the machine this is.
    pub fn boot(&self) -> &str {
        &self.boot
    }

    /// All of the head as it is now, except for the words of lines that are in their files.
    pub fn head(&mut self) -> Result<Option<&Head>, String> {
        self.read_all_if(Head::lacks_lines)?;
        Ok(self.seen.as_ref().map(|seen| &seen.head))
    }

    fn load(&mut self) -> Result<(), String> {
        let text = |error: std::io::Error| error.to_string();
        let opened = fs_err::OpenOptions::new().read(true).append(true).open(&self.place.head);
        let mut file = opened.map_err(text)?.into_parts().0;
        let now = file.metadata().map_err(text)?;
        let head = match Head::ends(&file, now.len(), &self.boot).map_err(text)? {
            Some(head) => head,
            None => whole(&mut file, &self.boot)?,
        };
        self.seen = Some(Seen { file, inode: now.ino(), head, owes_done: false });
        Ok(())
    }

    /// Reads the head with what was left out of it.
    fn read_all_if(&mut self, is_wanted: fn(&Head) -> bool) -> Result<(), String> {
        if let Some(seen) = &mut self.seen
            && is_wanted(&seen.head)
        {
            seen.head = whole(&mut seen.file, &self.boot).map_err(unreadable)?;
            if seen.owes_done {
                seen.head.done = seen.head.kept.len();
            }
        }
        Ok(())
    }

    /// The first head of a space. A journal that was there before has nobody who vouches for it, and stays so.
    fn begin(&mut self) -> Result<(), String> {
        let text = |error: std::io::Error| error.to_string();
        let mut journal = Vec::new();
        if let Some(Journal { file, .. }) = &mut self.journal {
            file.seek(SeekFrom::Start(0)).map_err(text)?;
            file.read_to_end(&mut journal).map_err(text)?;
        }
        let written = String::from_utf8_lossy(&journal);
        let last = written.lines().last().and_then(JournalEntry::parse);
        let base = Base {
            n: last.as_ref().map_or(0, |entry| entry.n),
            hash: last.as_ref().map(|entry| entry.hash),
            journal: journal.len() as u64,
            boot: self.boot.clone(),
            restored: 0,
            unproven: !journal.is_empty(),
        };
        self.replace(base)
    }

    /// Completes what was not known to be in its files, from the words that the head has kept.
    fn restore(&mut self, extent: Extent) -> Result<(), String> {
        let text = |error: std::io::Error| error.to_string();
        self.read_all_if(Head::lacks_words)?;
        let Some(seen) = &mut self.seen else { return Err("the head is not open".into()) };
        let from = if extent == Extent::All { 0 } else { seen.head.done };
        let restored = recover::complete(&self.place, &seen.head, from).map_err(text)?;
        let said = if restored == 0 { DONE.to_owned() } else { format!("restored {restored}\n{DONE}") };
        seen.file.write_all(said.as_bytes()).map_err(text)?;
        seen.head.len += said.len() as u64;
        seen.head.base.restored += restored;
        seen.head.done = seen.head.kept.len();
        seen.owes_done = false;
        Ok(())
    }

    /// Makes everything last where it is, and begins a new head there.
    pub fn checkpoint(&mut self) -> Result<(), String> {
        let text = |error: std::io::Error| error.to_string();
        self.read_all_if(Head::lacks_lines)?;
        let (Some(seen), Some(journal)) = (&self.seen, &self.journal) else {
            return Err("the head is not open".into());
        };
        let mut folders = BTreeSet::new();
        for kept in &seen.head.kept {
            folders.insert(kept.entry.file.split('/').next().unwrap_or_default());
        }
        let files: BTreeSet<&str> = seen.head.kept.iter().map(|kept| kept.entry.file.as_str()).collect();
        let below = |name: &&str| self.place.folder.join(name);
        let state = self.place.folder.ancestors().take(3).map(Path::to_owned);
        for path in files.iter().map(below).chain(folders.iter().map(below)).chain(state) {
            match File::open(&path) {
                Ok(file) => file.sync_all().map_err(text)?,
                // Somebody took it away: that is for `verify` to say.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        (self.sync)(&journal.file).map_err(text)?;
        let base = Base {
            n: seen.head.n(),
            hash: seen.head.hash(),
            journal: journal.file.metadata().map_err(text)?.len(),
            boot: self.boot.clone(),
            ..seen.head.base.clone()
        };
        self.replace(base)
    }

    /// Writes a head anew: beside the old one, synced, renamed over it, the folder synced.
    fn replace(&mut self, base: Base) -> Result<(), String> {
        let signed = self.sign(base.n, base.hash)?;
        let head = Head::new(base, signed);
        let make = || -> std::io::Result<(File, u64)> {
            let folder = self.place.head.parent().unwrap_or(&self.place.head);
            let is_new = !folder.exists();
            fs_err::create_dir_all(folder)?;
            let new = self.place.head.with_extension("new");
            let mut options = fs_err::OpenOptions::new();
            options.read(true).write(true).create(true).truncate(true);
            options.options_mut().mode(0o600);
            let mut file = options.open(&new)?.into_parts().0;
            file.write_all(head.opening().as_bytes())?;
            file.sync_all()?;
            fs_err::rename(&new, &self.place.head)?;
            for folder in folder.ancestors().take(if is_new { 4 } else { 1 }) {
                File::open(folder)?.sync_all()?;
            }
            let file =
                fs_err::OpenOptions::new().read(true).append(true).open(&self.place.head)?.into_parts().0;
            let inode = file.metadata()?.ino();
            Ok((file, inode))
        };
        let (file, inode) = make().map_err(|error| error.to_string())?;
        self.seen = Some(Seen { file, inode, head, owes_done: false });
        Ok(())
    }

    /// Signs, and tells the anchor.
    fn sign(&mut self, n: u64, hash: Option<Digest>) -> Result<Signed, String> {
        if self.key.is_none() {
            self.key =
                Some(self.place.keys.get_or_make(KeyPurpose::User).map_err(|error| error.fault().message)?);
        }
        let Some(key) = &self.key else { return Err("there is no key to sign with".into()) };
        let signed = Signed::make(key, &self.place.root, n, hash);
        if let Some(anchor) = &self.place.anchor {
            let line = serde_json::to_string(&signed).map_err(|error| error.to_string())? + "\n";
            anchor::tell(anchor, &line)?;
        }
        Ok(signed)
    }

    /// Signs what is there, so that a log that is closed is signed to its end. Not synced: if it is lost, so is nothing
    /// but a signature.
    fn sign_off(&mut self) -> Result<(), String> {
        let text = |error: std::io::Error| error.to_string();
        if !self.hold(Patience::Tries).map_err(text)? {
            return Ok(());
        }
        self.refresh()?;
        let head = self.seen.as_ref().map(|seen| &seen.head);
        let unsigned = head.filter(|head| !head.is_signed()).map(|head| (head.n(), head.hash()));
        let signed = unsigned.map(|(n, hash)| self.sign(n, hash)).transpose()?;
        let Some(seen) = &mut self.seen else { return Ok(()) };
        let line = signed.as_ref().map(signed_line).unwrap_or_default();
        seen.file.write_all(format!("{}{line}", seen.owed()).as_bytes()).map_err(text)
    }

    #[cfg(test)]
    pub fn skipped(&self) -> u64 {
        self.seen.as_ref().map_or(0, |seen| seen.head.skipped)
    }

    #[cfg(test)]
    pub fn open_files(&self) -> usize {
        self.files.open_ones()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.has_written && !self.is_doubtful {
            // A log without its last signature is still a log.
            let _ = self.sign_off();
        }
    }
}

fn unreadable(why: impl std::fmt::Display) -> String {
    format!("the head of the log cannot be read: {why}")
}

/// All of a head; the half of a line that somebody was writing when he was killed is cut off.
fn whole(file: &mut File, boot: &str) -> Result<Head, String> {
    let text = |error: std::io::Error| error.to_string();
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0)).map_err(text)?;
    file.read_to_end(&mut bytes).map_err(text)?;
    let head = Head::parse(&bytes, boot)?;
    if bytes.len() as u64 > head.len {
        file.set_len(head.len).map_err(text)?;
    }
    Ok(head)
}

/// A group, sealed, before it is written.
#[derive(Debug, Default)]
struct Draft {
    /// What the head is told: first what is owed to it.
    head: String,
    journal: String,
    journal_len: u64,
    parts: BTreeMap<Session, Part>,
    /// What is kept of the lines once they are in their files: without it the head would have to be read.
    kept: Vec<Kept>,
}

/// What a group adds to the file of one session.
#[derive(Debug)]
struct Part {
    lines: String,
    /// Where the file will end.
    end: End,
}
