//! A record in its place: numbered, linked to the line before, and hashed.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::Write as _;

use super::{CallResult, ChainEntry, DecisionNote, LockNote, PermissionNote, Record};
use crate::canonical::{write_digest, write_string, write_value};
use crate::{CanonicalError, Digest, Hasher, Version};

/// A line of the audit log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Number of the line in its file, from 1.
    pub seq: u64,
    /// The record.
    #[serde(flatten)]
    pub record: Record,
    /// Hash of the line before; `None` on the first.
    pub prev: Option<Digest>,
    /// Hash of this line without this field.
    pub hash: Digest,
}

/// A line as it is written: canonical JSON, no line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// The text.
    pub text: String,
    /// Its `hash`.
    pub hash: Digest,
    /// Digest of the text and the line break behind it, as it stands in a file.
    pub written: Digest,
}

/// Why a text is not a line of the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// It is no JSON object with the fields of a record.
    #[error("it is not a record: {0}")]
    NoRecord(String),
    /// It says the same as a line of the log, but is not written like one.
    #[error("it is not written as the log writes it")]
    NotCanonical,
    /// Its hash is not the hash of what it says.
    #[error("its hash is not the hash of what it says")]
    WrongHash,
}

impl Line {
    /// Puts a record behind the line whose hash is `prev`. Written out once, without a tree of values in between: every
    /// call waits for this.
    pub fn seal(seq: u64, record: &Record, prev: Option<Digest>) -> Result<Sealed, CanonicalError> {
        let mut text = String::with_capacity(2048);
        let place = write(&mut text, seq, record, prev)?;
        // It is hashed without its hash and with it: up to there the two are the same.
        let (before, behind) = text.split_at_checked(place).unwrap_or((&text, ""));
        let mut without = Hasher::default();
        without.update(before.as_bytes());
        let mut with = without.clone();
        without.update(behind.as_bytes());
        let hash = without.finish();
        let own = hash.spell(|digits| ["\"hash\":\"sha256:", digits, "\","].concat());
        for part in [&own, behind, "\n"] {
            with.update(part.as_bytes());
        }
        text.insert_str(place, &own);
        Ok(Sealed { text, hash, written: with.finish() })
    }

    /// Reads a line exactly as [`Line::seal`] writes it; anything else is no line of the log.
    pub fn parse(text: &str) -> Result<Self, LineError> {
        let line: Self =
            serde_json::from_str(text).map_err(|error| LineError::NoRecord(error.to_string()))?;
        let sealed = Self::seal(line.seq, &line.record, line.prev)
            .map_err(|error| LineError::NoRecord(error.to_string()))?;
        if sealed.hash != line.hash {
            return Err(LineError::WrongHash);
        }
        if sealed.text == text { Ok(line) } else { Err(LineError::NotCanonical) }
    }
}

/// Writes everything but the hash, keys in order; returns where the hash belongs.
fn write(out: &mut String, seq: u64, record: &Record, prev: Option<Digest>) -> Result<usize, CanonicalError> {
    let mut object = Object::begin(out);
    object.text("at", &record.at);
    object.optional_text("call", record.call.as_deref());
    object.text("caller", &record.caller);
    if !record.chain.is_empty() {
        object.key("chain");
        chain(object.out, &record.chain);
    }
    object.digest("chain_hash", record.chain_hash);
    if let Some(note) = &record.decision {
        object.key("decision");
        decision(object.out, note)?;
    }
    object.text("event", record.event.as_str());
    // Never the first member, and never the last.
    let place = object.out.len() + 1;
    object.digest("integrity", record.integrity);
    if let Some(note) = &record.lockfile {
        object.key("lockfile");
        lockfile(object.out, note);
    }
    if let Some(params) = &record.params {
        object.value("params", params)?;
    }
    object.digest("params_hash", record.params_hash);
    if let Some(note) = &record.permission {
        object.key("permission");
        permission(object.out, note);
    }
    match prev {
        Some(prev) => object.digest("prev", Some(prev)),
        None => object.raw("prev", "null"),
    }
    if !record.redacted.is_empty() {
        object.key("redacted");
        list(object.out, &record.redacted, |out, pointer| write_string(out, pointer));
    }
    if let Some(result) = &record.result {
        object.key("result");
        call_result(object.out, result)?;
    }
    object.digest("rules_version", record.rules_version);
    object.number("seq", seq)?;
    object.text("session", &record.session);
    object.text("tool", &record.tool);
    if let Some(version) = &record.version {
        object.version("version", version);
    }
    object.end();
    Ok(place)
}

fn chain(out: &mut String, links: &[ChainEntry]) {
    list(out, links, |out, link| {
        let mut object = Object::begin(out);
        object.digest("integrity", Some(link.integrity));
        object.text("tool_id", link.tool_id.as_str());
        object.version("version", &link.version);
        object.end();
    });
}

fn decision(out: &mut String, note: &DecisionNote) -> Result<(), CanonicalError> {
    let mut object = Object::begin(out);
    object.text("answer", &note.answer);
    object.optional_text("approval", note.approval.as_deref());
    object.optional_text("approved_by", note.approved_by.as_deref());
    if !note.events.is_empty() {
        object.values("events", &note.events)?;
    }
    if let Some(judged) = &note.judged {
        object.value("judged", judged)?;
    }
    object.values("reasons", &note.reasons)?;
    object.number("sequence", note.sequence)?;
    object.end();
    Ok(())
}

fn lockfile(out: &mut String, note: &LockNote) {
    let mut object = Object::begin(out);
    object.raw("agrees", if note.agrees { "true" } else { "false" });
    object.digest("digest", Some(note.digest));
    object.text("key", &note.key);
    object.text("mode", note.mode.as_str());
    object.text("scope", note.scope.as_str());
    object.end();
}

fn permission(out: &mut String, note: &PermissionNote) {
    let mut object = Object::begin(out);
    object.raw("allowed", if note.allowed { "true" } else { "false" });
    object.text("answer", &note.answer);
    object.text("profile", &note.profile);
    object.end();
}

fn call_result(out: &mut String, result: &CallResult) -> Result<(), CanonicalError> {
    let mut object = Object::begin(out);
    object.number("duration_us", result.duration_us)?;
    object.optional_text("kind", result.kind.map(crate::ErrorKind::as_str));
    object.raw("ok", if result.ok { "true" } else { "false" });
    object.digest("output_hash", result.output_hash);
    object.end();
    Ok(())
}

fn list<T>(out: &mut String, items: &[T], mut write: impl FnMut(&mut String, &T)) {
    out.push('[');
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(']');
}

/// An object that is written member by member, in the order of the keys.
struct Object<'a> {
    out: &'a mut String,
    is_empty: bool,
}

impl<'a> Object<'a> {
    fn begin(out: &'a mut String) -> Self {
        out.push('{');
        Self { out, is_empty: true }
    }

    fn key(&mut self, name: &str) {
        if !std::mem::take(&mut self.is_empty) {
            self.out.push(',');
        }
        self.out.push('"');
        self.out.push_str(name);
        self.out.push_str("\":");
    }

    fn raw(&mut self, name: &str, value: &str) {
        self.key(name);
        self.out.push_str(value);
    }

    fn text(&mut self, name: &str, value: &str) {
        self.key(name);
        write_string(self.out, value);
    }

    fn optional_text(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(name, value);
        }
    }

    /// A version has nothing to escape.
    fn version(&mut self, name: &str, value: &Version) {
        self.key(name);
        // Writing to a String cannot fail.
        let _ = write!(self.out, "\"{value}\"");
    }

    fn digest(&mut self, name: &str, value: Option<Digest>) {
        if let Some(value) = value {
            self.key(name);
            write_digest(self.out, value);
        }
    }

    fn number(&mut self, name: &str, value: u64) -> Result<(), CanonicalError> {
        if i64::try_from(value).is_err() {
            return Err(CanonicalError::IntegerRange(value.to_string()));
        }
        self.key(name);
        // Writing to a String cannot fail.
        let _ = write!(self.out, "{value}");
        Ok(())
    }

    fn value(&mut self, name: &str, value: &Value) -> Result<(), CanonicalError> {
        self.key(name);
        write_value(self.out, value)
    }

    fn values(&mut self, name: &str, values: &[Value]) -> Result<(), CanonicalError> {
        self.key(name);
        self.out.push('[');
        for (i, value) in values.iter().enumerate() {
            if i > 0 {
                self.out.push(',');
            }
            write_value(self.out, value)?;
        }
        self.out.push(']');
        Ok(())
    }

    fn end(self) {
        self.out.push('}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical;
    use serde_json::json;

    fn full() -> Record {
        let digest = Digest::of(b"x");
        serde_json::from_value(json!({
            "event": "enter", "at": "2026-01-01T00:00:00.000001Z", "session": "s", "caller": "cli:ünï\n", "call": "c",
            "tool": "a.b", "version": "1.0.0-beta.1", "integrity": digest, "chain_hash": digest,
            "chain": [{"tool_id": "a.b", "version": "1.0.0", "integrity": digest}, {"tool_id": "p", "version": "2.0.0", "integrity": digest}],
            "lockfile": {"key": "k/a@1", "scope": "project", "digest": digest, "mode": "strict", "agrees": true},
            "params": {"z": [1, 2.5, null, "\u{1F600}"], "a": {"hash": "no"}}, "redacted": ["/a/b", "/é"], "params_hash": digest,
            "decision": {"sequence": 3, "answer": "allow", "reasons": [{"kind": "asked"}, 1], "approved_by": "me", "approval": "id", "events": [{"b": 1}], "judged": {"b": 1, "a": 2}},
            "rules_version": digest, "permission": {"profile": "cli", "allowed": true, "answer": "allow"},
            "result": {"ok": false, "kind": "timeout", "duration_us": 7, "output_hash": digest},
        }))
        .unwrap()
    }

    fn bare() -> Record {
        let text = r#"{"event":"request","at":"t","session":"s","caller":"c","tool":"t"}"#;
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn what_is_written_is_the_canonical_form_and_its_hash_is_over_the_rest() {
        for (seq, record, prev) in [(1, full(), None), (2, full(), Some(Digest::of(b"p"))), (3, bare(), None)]
        {
            let sealed = Line::seal(seq, &record, prev).unwrap();
            let mut value: Value = serde_json::from_str(&sealed.text).unwrap();
            assert_eq!(canonical(&value).unwrap(), sealed.text);
            assert_eq!(Digest::of(format!("{}\n", sealed.text).as_bytes()), sealed.written);
            let line = Line { seq, record, prev, hash: sealed.hash };
            assert_eq!(serde_json::to_value(&line).unwrap(), value);
            assert_eq!(Line::parse(&sealed.text), Ok(line));
            value.as_object_mut().unwrap().remove("hash");
            assert_eq!(Digest::of(canonical(&value).unwrap().as_bytes()), sealed.hash);
        }
    }

    #[test]
    fn a_change_of_any_byte_is_refused() {
        let text = Line::seal(5, &full(), Some(Digest::of(b"p"))).unwrap().text;
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let changed = String::from_utf8(bytes).unwrap();
            assert!(Line::parse(&changed).is_err(), "byte {at}: {changed}");
        }
        assert_eq!(Line::parse(&text.replacen(',', ", ", 1)), Err(LineError::NotCanonical));
        assert_eq!(Line::parse(&text.replacen('{', "{\"aa\":1,", 1)), Err(LineError::NotCanonical));
    }

    #[test]
    fn numbers_that_cannot_be_hashed_are_refused() {
        assert!(Line::seal(u64::MAX, &bare(), None).is_err());
        let record = Record { params: Some(json!(u64::MAX)), ..bare() };
        assert!(Line::seal(1, &record, None).is_err());
    }
}
