//! The journal: one entry for each line of each file, in the order in which they were written.

use std::fmt::Write as _;

use crate::canonical::{write_digest, write_string};
use crate::{Digest, Hasher};

/// Names one line of one file of the audit log, linked to the entry before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    /// Number of the entry, from 1, over all files.
    pub n: u64,
    /// The file, below the log's folder: `2026-01-01/SESSION.jsonl`. Plain ASCII; other names cannot be read back.
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
    /// Links an entry to the one before: `hash` is computed, whatever it was. Also as it is written: canonical JSON, no
    /// line break.
    #[must_use]
    pub fn sealed(mut self) -> (Self, String) {
        let (mut text, place) = self.write();
        self.hash = Digest::of(text.as_bytes());
        text.insert_str(place, &self.hash.spell(|digits| [",\"hash\":\"sha256:", digits, "\""].concat()));
        (self, text)
    }

    /// Reads an entry exactly as it is written; `None` for anything else. By hand, since a log has as many of these as
    /// lines, and there is only one way to write one.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("{\"at\":")?;
        let (at, rest) = number(rest)?;
        let (file, rest) = rest.strip_prefix(",\"file\":\"")?.split_once('"')?;
        let is_plain = file.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'\\');
        let before = text.len().checked_sub(rest.len())?;
        let (hash, rest) = digest(rest.strip_prefix(",\"hash\":")?)?;
        let after = text.get(text.len().checked_sub(rest.len())?..)?;
        let (line, rest) = digest(rest.strip_prefix(",\"line\":")?)?;
        let (n, rest) = number(rest.strip_prefix(",\"n\":")?)?;
        let rest = rest.strip_prefix(",\"prev\":")?;
        let (prev, rest) = match rest.strip_prefix("null") {
            Some(rest) => (None, rest),
            None => digest(rest).map(|(prev, rest)| (Some(prev), rest))?,
        };
        let (seq, rest) = number(rest.strip_prefix(",\"seq\":")?)?;
        let (written, rest) = digest(rest.strip_prefix(",\"text\":")?)?;
        let mut hasher = Hasher::default();
        hasher.update(text.get(..before)?.as_bytes());
        hasher.update(after.as_bytes());
        let is_good = is_plain && rest == "}" && hasher.finish() == hash;
        is_good.then(|| Self { n, file: file.to_owned(), seq, at, line, text: written, prev, hash })
    }

    /// Everything but the hash, and where that belongs.
    fn write(&self) -> (String, usize) {
        let mut out = String::with_capacity(448);
        // Writing to a String cannot fail.
        let _ = write!(out, "{{\"at\":{},\"file\":", self.at);
        write_string(&mut out, &self.file);
        let place = out.len();
        out.push_str(",\"line\":");
        write_digest(&mut out, self.line);
        let _ = write!(out, ",\"n\":{},\"prev\":", self.n);
        match self.prev {
            Some(prev) => write_digest(&mut out, prev),
            None => out.push_str("null"),
        }
        let _ = write!(out, ",\"seq\":{},\"text\":", self.seq);
        write_digest(&mut out, self.text);
        out.push('}');
        (out, place)
    }
}

/// Digits without a needless zero, and what follows.
fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit())?;
    let (digits, rest) = text.split_at_checked(end)?;
    let is_plain = digits == "0" || !digits.starts_with('0');
    is_plain.then(|| digits.parse().ok().map(|number| (number, rest)))?
}

/// A quoted digest, and what follows.
fn digest(text: &str) -> Option<(Digest, &str)> {
    let (digest, rest) = text.strip_prefix('"')?.split_once('"')?;
    Some((Digest::parse(digest).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_canonical_and_reads_back_and_no_byte_of_it_can_change() {
        let digest = Digest::of(b"x");
        for prev in [None, Some(digest)] {
            let file = "2026-01-01/x-1.jsonl".to_owned();
            let entry =
                JournalEntry { n: 7, file, seq: 3, at: 99, line: digest, text: digest, prev, hash: digest };
            let (entry, text) = entry.sealed();
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
