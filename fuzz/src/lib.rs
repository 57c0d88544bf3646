//! What must hold for any bytes at all. One function per target; each panics when it does not hold.
//!
//! The fuzzer calls these with bytes of its own; `crates/kiwi-model/tests/fuzz_corpus.rs` includes this file and calls
//! them with the committed corpora, so that a found input stays found.

use kiwi_model::lockfile::{LockName, Lockfile, LockfileError};
use kiwi_model::manifest::Source;
use kiwi_model::record::{JournalEntry, Line, Record};
use kiwi_model::yaml::{self, Place};
use kiwi_model::{CanonicalError, Explain, Manifest, Space, ToolId, canonical, integrity_of};
use serde_json::Value;

/// Strict YAML: a value or an error with a place inside the text; the value survives its canonical form unchanged.
pub fn yaml(bytes: &[u8]) {
    match yaml::parse(bytes) {
        Ok(document) => {
            let text = canonical(&document.value).expect("whatever strict YAML accepts can be hashed");
            same(&document.value, &text);
            within(document.place("/no/such/node"), bytes);
        }
        Err(error) => {
            assert!(!error.message.is_empty());
            within(error.place, bytes);
        }
    }
}

/// A manifest: read or refused with problems that have places; what was read can be hashed, twice the same.
pub fn manifest(bytes: &[u8]) {
    let Ok(document) = yaml::parse(bytes) else { return };
    let named = document.value.get("tool_id").or_else(|| document.value.pointer("/manifest/tool_id"));
    let id = named.and_then(Value::as_str).and_then(|id| ToolId::parse(id).ok());
    let id = id.unwrap_or_else(|| ToolId::parse("fuzz").expect("a plain id"));
    for script in [None, Some("fuzz.sh".to_owned())] {
        let source = Source { file: "tool.yaml".to_owned(), id: id.clone(), script };
        match Manifest::read(&document, &source) {
            Ok((hashed, manifest, warnings)) => {
                let text = canonical(&hashed).expect("a manifest can be hashed");
                same(&hashed, &text);
                let hash = || integrity_of(&manifest.tool_id, &manifest.version, &hashed, &[]);
                assert_eq!(hash().expect("a hash"), hash().expect("a hash"));
                canonical(&manifest.element(Space::Project, "fuzz")).expect("an element can be hashed");
                let (again, second, warned) =
                    Manifest::read(&document, &source).expect("read once, read twice");
                assert_eq!((again, second.normalised, warned), (hashed, manifest.normalised, warnings));
            }
            Err(error) => {
                assert!(!error.problems.is_empty() && !error.to_string().is_empty());
                error.problems.iter().for_each(|problem| within(problem.place, bytes));
                canonical(&error.details()).expect("details can be written down");
            }
        }
    }
}

/// Canonical JSON: ASCII, stable, and nothing lost: reading it back gives the value, floats to the last bit.
pub fn json(bytes: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return };
    match canonical(&value) {
        Ok(text) => same(&value, &text),
        Err(CanonicalError::IntegerRange(_)) => {
            assert!(has_large_integer(&value), "refused without a reason");
        }
        Err(CanonicalError::NotFinite) => panic!("JSON cannot spell a number that is not finite"),
    }
}

/// A lockfile, and its name: refused with a reason, or read; what was read is written, and read again unchanged.
pub fn lockfile(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let first = text.lines().next().unwrap_or_default();
    if let Some(name) = LockName::parse(first) {
        assert_eq!(name.file_name(), first, "a name is spelled in one way");
    }
    match Lockfile::parse(text) {
        Ok(lock) => {
            let written = lock.to_text();
            let again = Lockfile::parse(&written).expect("what was written can be read");
            assert_eq!(again, lock, "nothing is lost on the way");
            assert_eq!(again.to_text(), written, "written twice is written once");
            assert!(again.agrees_with(&lock) && written.ends_with('\n'));
            for alternative in [None, Some(lock.chain_hash.clone())] {
                let (tool_id, version) = (lock.root.tool_id.clone(), lock.root.version.clone());
                let name = LockName { tool_id, version, alternative };
                let read = LockName::parse(&name.file_name()).expect("a name that was written can be read");
                assert_eq!(read.settle(&lock.chain_hash), name);
            }
        }
        Err(error) => {
            assert!(!error.to_string().is_empty() && error.hint().is_some());
            if let LockfileError::Conflict { line } | LockfileError::Unreadable { line, .. } = error {
                let lines = text.split('\n').count();
                assert!((1..=lines).contains(&line), "line {line} of a text with {lines}");
            }
        }
    }
}

/// A line of the audit log, or an entry of its journal: refused, or written again as it was read, to the last byte.
pub fn audit_line(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Line::parse(text) {
        Ok(line) => {
            let sealed = Line::seal(line.seq, &line.record, line.prev).expect("what was read can be written");
            assert_eq!((sealed.text.as_str(), sealed.hash), (text, line.hash), "nothing is lost on the way");
            let value: Value = serde_json::from_str(text).expect("a line is JSON");
            same(&value, text);
            if let Ok(again) = Line::seal(line.seq + 1, &line.record, Some(line.hash)) {
                assert!(again.hash != line.hash && Line::parse(&again.text).is_ok());
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Some(entry) = JournalEntry::parse(text) {
        let sealed = entry.clone().sealed();
        assert_eq!(
            sealed,
            (entry, text.to_owned()),
            "an entry is written in one way, and its hash is its own"
        );
    }
    // What is no record at all may still be one with a wrong hash; sealing that gives a good line.
    if let Ok(record) = serde_json::from_str::<Record>(text)
        && let Ok(sealed) = Line::seal(1, &record, None)
    {
        let line = Line::parse(&sealed.text).expect("what was sealed can be read");
        assert_eq!(line.hash, sealed.hash);
    }
}

fn same(value: &Value, text: &str) {
    assert!(text.is_ascii(), "canonical JSON is ASCII");
    assert!(text.bytes().all(|byte| (b' '..0x7f).contains(&byte)), "and has no control characters");
    let back: Value = serde_json::from_str(text).expect("canonical JSON is JSON");
    assert_eq!(canonical(&back).as_deref(), Ok(text), "canonical twice is canonical once");
    assert!(equal(value, &back), "a value was lost on the way: {value} became {back}");
}

/// Equal to the last bit: `0.0` is not `-0.0`, and `1` is not `1.0`.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a.is_f64() == b.is_f64()
                && a.as_i64() == b.as_i64()
                && a.as_f64().map(f64::to_bits) == b.as_f64().map(f64::to_bits)
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        (a, b) => a == b,
    }
}

fn has_large_integer(value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            number.as_i64() == Some(i64::MIN) || (number.is_u64() && number.as_i64().is_none())
        }
        Value::Array(items) => items.iter().any(has_large_integer),
        Value::Object(map) => map.values().any(has_large_integer),
        _ => false,
    }
}

/// A place in the text, or just behind its end.
fn within(place: Place, bytes: &[u8]) {
    // A carriage return alone also ends a line in YAML.
    let lines = bytes.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count() + 1;
    assert!(place.line >= 1 && place.column >= 1, "lines and columns count from 1: {place:?}");
    assert!(place.line <= lines + 1, "line {} of a text with {lines}", place.line);
    assert!(place.column <= bytes.len() + 2, "column {} of a text with {} bytes", place.column, bytes.len());
}
