//! The journal: one entry for each line of each file, in the order in which they were written.

use serde::Deserialize;
use std::fmt::Write as _;

use crate::Digest;
use crate::canonical::write_string;

/// Names one line of one file of the audit log, linked to the entry before.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JournalEntry {
    /// Number of the entry, from 1, over all files.
    pub n: u64,
    /// The file, below the log's folder: `2026-01-01/SESSION.jsonl`.
    pub file: String,
    /// Number of the line in that file.
    pub seq: u64,
    /// Where the line begins, in bytes.
    pub at: u64,
    /// The line's own hash.
    pub line: Digest,
    /// Digest of the line as it stands in the file, its line break included: no other spelling of it will do.
    pub text: Digest,
    /// Hash of the entry before; `None` on the first.
    pub prev: Option<Digest>,
    /// Hash of this entry without this field.
    pub hash: Digest,
}

impl JournalEntry {
    /// Links an entry to the one before: `hash` is computed, whatever it was.
    #[must_use]
    pub fn sealed(mut self) -> Self {
        self.hash = Digest::of(self.write(None).as_bytes());
        self
    }

    /// As it is written: canonical JSON, no line break.
    pub fn to_text(&self) -> String {
        self.write(Some(self.hash))
    }

    /// Reads an entry exactly as it is written; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let entry: Self = serde_json::from_str(text).ok()?;
        let is_good = entry.to_text() == text && entry.clone().sealed().hash == entry.hash;
        is_good.then_some(entry)
    }

    fn write(&self, hash: Option<Digest>) -> String {
        let mut out = String::with_capacity(448);
        // Writing to a String cannot fail.
        let _ = write!(out, "{{\"at\":{},\"file\":", self.at);
        write_string(&mut out, &self.file);
        if let Some(hash) = hash {
            let _ = write!(out, ",\"hash\":\"{hash}\"");
        }
        let _ = write!(out, ",\"line\":\"{}\",\"n\":{},\"prev\":", self.line, self.n);
        match self.prev {
            Some(prev) => _ = write!(out, "\"{prev}\""),
            None => out.push_str("null"),
        }
        let _ = write!(out, ",\"seq\":{},\"text\":\"{}\"}}", self.seq, self.text);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_canonical_and_reads_back_and_no_byte_of_it_can_change() {
        let digest = Digest::of(b"x");
        for prev in [None, Some(digest)] {
            let file = "2026-01-01/ü.jsonl".to_owned();
            let entry =
                JournalEntry { n: 7, file, seq: 3, at: 99, line: digest, text: digest, prev, hash: digest };
            let entry = entry.sealed();
            let text = entry.to_text();
            let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(crate::canonical(&value).unwrap(), text);
            value.as_object_mut().unwrap().remove("hash");
            assert_eq!(Digest::of(crate::canonical(&value).unwrap().as_bytes()), entry.hash);
            assert_eq!(JournalEntry::parse(&text), Some(entry));
            for at in 0..text.len() {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= 1;
                assert_eq!(JournalEntry::parse(&String::from_utf8_lossy(&bytes)), None, "byte {at}");
            }
        }
    }
}
