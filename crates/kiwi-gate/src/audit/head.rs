//! The head: where the chain ends, and the lines since the last checkpoint, word for word.
//!
//! A text file in the user space. It begins with `base` (where the last checkpoint was) and `signed` (who says so);
//! behind that stands, for each group of records, an `entry` per record and, once all of them are in their files,
//! `done`. A checkpoint replaces the file by one that begins there.

use kiwi_model::Digest;
use kiwi_model::record::JournalEntry;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use super::signed::Signed;

/// More than the opening of a head takes.
const OPENING: usize = 4 << 10;
/// More than the last group of a head usually takes.
const ENDING: usize = 16 << 10;

/// A checkpoint: everything up to here is in its files, on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Base {
    /// Number of the last entry.
    pub n: u64,
    /// Its hash.
    pub hash: Option<Digest>,
    /// How long the journal was.
    pub journal: u64,
    /// Since when this machine is up: what was written since then and not synced is still there.
    pub boot: String,
    /// How many lines were put back after a crash, in all.
    pub restored: u64,
    /// Whether there was a journal before there was a head.
    pub unproven: bool,
}

/// A line since the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    /// Its place.
    pub entry: JournalEntry,
    /// The line, with its line break; `None` where it is in its file and nobody needs it here.
    pub text: Option<String>,
}

impl Kept {
    /// Reads what stands behind `entry`.
    fn parse(line: &str) -> Option<Self> {
        let (entry, text) = line.split_once('\t')?;
        let entry = JournalEntry::parse(entry)?;
        let text = format!("{text}\n");
        (entry.text == Digest::of(text.as_bytes())).then_some(Self { entry, text: Some(text) })
    }
}

/// The head as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    /// The last checkpoint.
    pub base: Base,
    /// Signatures since then, the checkpoint's own first.
    pub signed: Vec<Signed>,
    /// How many lines since then were left out: all of those are in their files.
    pub skipped: u64,
    /// The lines behind those.
    pub kept: Vec<Kept>,
    /// How many of those are known to be in their files.
    pub done: usize,
    /// How many bytes of the file were understood.
    pub len: u64,
}

/// How to take a line that makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tail {
    /// The machine has not been down: every whole line was written on purpose.
    Whole,
    /// It has: behind what was synced there may be anything.
    Lost,
}

impl Head {
    /// Behind a checkpoint.
    pub fn new(base: Base, signed: Signed) -> Self {
        let mut head = Self { base, signed: vec![signed], skipped: 0, kept: Vec::new(), done: 0, len: 0 };
        head.len = head.opening().len() as u64;
        head
    }

    /// Its file, as a checkpoint writes it.
    pub fn opening(&self) -> String {
        let base = serde_json::to_string(&self.base).unwrap_or_default();
        let signed = self.signed.first().map(signed_line).unwrap_or_default();
        format!("base {base}\n{signed}")
    }

    /// Reads a file. `boot` tells which of its ends can be trusted.
    pub fn parse(bytes: &[u8], boot: &str) -> Result<Self, String> {
        let (mut head, rest) = Self::begun(bytes)?;
        let tail = if head.is_of(boot) { Tail::Whole } else { Tail::Lost };
        head.feed(rest, tail)?;
        if head.is_vouched_for() { Ok(head) } else { Err("its checkpoint is not signed".into()) }
    }

    /// Reads the two ends of a file of this length and leaves out what lies between: who goes on from its end needs no
    /// more. `None` where that is not enough: the machine was down, something is left to do, or anything is unusual.
    pub fn ends(file: &File, len: u64, boot: &str) -> std::io::Result<Option<Self>> {
        let from = len.saturating_sub(ENDING as u64);
        if from < OPENING as u64 {
            return Ok(None);
        }
        let (mut opening, mut ending) = ([0; OPENING], [0; ENDING]);
        file.read_exact_at(&mut opening, 0)?;
        file.read_exact_at(&mut ending, from)?;
        Ok(Self::settled(&opening, &ending, len).filter(|head| head.is_of(boot)))
    }

    fn settled(opening: &[u8], ending: &[u8], len: u64) -> Option<Self> {
        let (mut head, rest) = Self::begun(opening).ok()?;
        head.take(whole(rest.split_inclusive(|byte| *byte == b'\n').next()?)?)?;
        // The first line has lost its beginning, and the first entry is linked to one that was left out.
        let lines = ending.split_inclusive(|byte| *byte == b'\n').skip(1);
        let mut lines = lines.skip_while(|line| !line.starts_with(b"entry "));
        let first = Kept::parse(whole(lines.next()?)?.strip_prefix("entry ")?)?;
        head.skipped = first.entry.n.checked_sub(head.base.n)?.checked_sub(1)?;
        head.kept.push(first);
        for line in lines {
            head.take(whole(line)?)?;
        }
        head.len = len;
        (head.is_vouched_for() && head.done == head.kept.len()).then_some(head)
    }

    /// Reads the checkpoint at the beginning of a file; also what stands behind it.
    fn begun(bytes: &[u8]) -> Result<(Self, &[u8]), String> {
        let end = bytes.iter().position(|byte| *byte == b'\n').ok_or("it has no first line")?;
        let (first, rest) = bytes.split_at(end + 1);
        let base = whole(first).and_then(|line| serde_json::from_str(line.strip_prefix("base ")?).ok());
        let base = base.ok_or("line 1 is not a checkpoint")?;
        let len = first.len() as u64;
        Ok((Self { base, signed: Vec::new(), skipped: 0, kept: Vec::new(), done: 0, len }, rest))
    }

    /// Whether the machine is still up that it was begun on.
    pub fn is_of(&self, boot: &str) -> bool {
        !boot.is_empty() && self.base.boot == boot
    }

    fn is_vouched_for(&self) -> bool {
        self.signed.first().is_some_and(|signed| (signed.n, signed.hash) == (self.base.n, self.base.hash))
    }

    /// Goes on reading. What is behind the last whole line is not taken.
    pub fn feed(&mut self, bytes: &[u8], tail: Tail) -> Result<(), String> {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if !line.ends_with(b"\n") {
                break;
            }
            if whole(line).and_then(|text| self.take(text)).is_none() {
                if tail == Tail::Lost {
                    break;
                }
                return Err(format!("what stands behind entry {} makes no sense", self.n()));
            }
            self.len += line.len() as u64;
        }
        Ok(())
    }

    fn take(&mut self, line: &str) -> Option<()> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "entry" => {
                let kept = Kept::parse(rest)?;
                if kept.entry.n != self.n() + 1 || kept.entry.prev != self.hash() {
                    return None;
                }
                self.kept.push(kept);
            }
            "done" if rest.is_empty() => self.done = self.kept.len(),
            "restored" => self.base.restored += rest.parse::<u64>().ok()?,
            "signed" => self.signed.push(serde_json::from_str(rest).ok()?),
            _ => return None,
        }
        Some(())
    }

    /// Whether lines were left out.
    pub fn lacks_lines(&self) -> bool {
        self.skipped > 0
    }

    /// Whether lines, or the words of some, were left out.
    pub fn lacks_words(&self) -> bool {
        self.lacks_lines() || self.kept.iter().any(|kept| kept.text.is_none())
    }

    /// Number of the last entry.
    pub fn n(&self) -> u64 {
        self.kept.last().map_or(self.base.n, |kept| kept.entry.n)
    }

    /// Its hash.
    pub fn hash(&self) -> Option<Digest> {
        self.kept.last().map_or(self.base.hash, |kept| Some(kept.entry.hash))
    }

    /// Whether a signature covers all of it.
    pub fn is_signed(&self) -> bool {
        self.signed.last().is_some_and(|signed| signed.n == self.n())
    }
}

/// The text of a line that has its end.
fn whole(line: &[u8]) -> Option<&str> {
    std::str::from_utf8(line.strip_suffix(b"\n")?).ok()
}

/// The line of an entry.
pub(crate) fn entry_line(out: &mut String, entry: &str, text: &str) {
    for part in ["entry ", entry, "\t", text, "\n"] {
        out.push_str(part);
    }
}

/// The line of a signature.
pub(crate) fn signed_line(signed: &Signed) -> String {
    format!("signed {}\n", serde_json::to_string(signed).unwrap_or_default())
}
