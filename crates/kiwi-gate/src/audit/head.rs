//! The head: where the chain ends, and the lines since the last checkpoint, word for word.
//!
//! A text file in the user space. It begins with `base` (where the last checkpoint was) and `signed` (who says so);
//! behind that stands, for each group of records, an `entry` per record and, once all of them are in their files,
//! `done`. A checkpoint replaces the file by one that begins there.

use kiwi_model::Digest;
use kiwi_model::record::JournalEntry;
use serde::{Deserialize, Serialize};

use super::signed::Signed;

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
    /// The line, with its line break.
    pub text: String,
}

/// The head as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    /// The last checkpoint.
    pub base: Base,
    /// Signatures since then, the checkpoint's own first.
    pub signed: Vec<Signed>,
    /// Lines since then.
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
        let mut head = Self { base, signed: vec![signed], kept: Vec::new(), done: 0, len: 0 };
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
        let end = bytes.iter().position(|byte| *byte == b'\n').ok_or("it has no first line")?;
        let (first, _) = bytes.split_at(end);
        let first = std::str::from_utf8(first).ok().and_then(|line| line.strip_prefix("base "));
        let base: Base =
            first.and_then(|json| serde_json::from_str(json).ok()).ok_or("line 1 is not a checkpoint")?;
        let tail = if !boot.is_empty() && base.boot == boot { Tail::Whole } else { Tail::Lost };
        let mut head = Self { base, signed: Vec::new(), kept: Vec::new(), done: 0, len: end as u64 + 1 };
        head.feed(bytes.get(end + 1..).unwrap_or_default(), tail)?;
        if head.signed.first().is_none_or(|signed| (signed.n, signed.hash) != (head.base.n, head.base.hash)) {
            return Err("its checkpoint is not signed".into());
        }
        Ok(head)
    }

    /// Goes on reading. What is behind the last whole line is not taken.
    pub fn feed(&mut self, bytes: &[u8], tail: Tail) -> Result<(), String> {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let Some(whole) = line.strip_suffix(b"\n") else { break };
            if std::str::from_utf8(whole).ok().and_then(|text| self.take(text)).is_none() {
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
                let (entry, text) = rest.split_once('\t')?;
                let entry = JournalEntry::parse(entry)?;
                let text = format!("{text}\n");
                let is_next = entry.n == self.n() + 1 && entry.prev == self.hash();
                if !is_next || entry.text != Digest::of(text.as_bytes()) {
                    return None;
                }
                self.kept.push(Kept { entry, text });
            }
            "done" if rest.is_empty() => self.done = self.kept.len(),
            "restored" => self.base.restored += rest.parse::<u64>().ok()?,
            "signed" => self.signed.push(serde_json::from_str(rest).ok()?),
            _ => return None,
        }
        Some(())
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

/// The line of an entry.
pub(crate) fn entry_line(out: &mut String, entry: &str, text: &str) {
    // The text brings its own line break.
    for part in ["entry ", entry, "\t", text] {
        out.push_str(part);
    }
}

/// The line of a signature.
pub(crate) fn signed_line(signed: &Signed) -> String {
    format!("signed {}\n", serde_json::to_string(signed).unwrap_or_default())
}
