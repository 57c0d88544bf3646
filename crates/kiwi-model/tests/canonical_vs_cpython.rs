//! Canonical JSON and integrity, byte for byte against the reference that everybody has: CPython's `json` and `hashlib`.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test states what must hold by panicking"
)]
#![expect(clippy::disallowed_methods, reason = "the reference is another program")]

mod support;

use kiwi_model::{Digest, FileEntry, ToolId, Version, canonical, integrity_of};
use serde_json::{Value, json};
use support::{Generator, python};

/// Ten times as many in `cargo xtask soak`.
fn times(count: usize) -> usize {
    if std::env::var_os("KIWI_SOAK").is_some() { count * 10 } else { count }
}

const DUMPS: &str = "
import json, sys
for line in sys.stdin.buffer:
    print(json.dumps(json.loads(line), sort_keys=True, separators=(',', ':')))
";

#[test]
fn canonical_json_is_what_cpython_prints() {
    let mut generator = Generator::new(0x6b69_7769);
    let documents: Vec<Value> = (0..times(24_000)).map(|_| generator.document()).collect();
    let lines: Vec<String> = documents.iter().map(|document| generator.spell(document)).collect();
    // Kiwi reads the same text that Python reads, so reading is compared as well as printing.
    let ours: Vec<String> = lines
        .iter()
        .map(|line| canonical(&serde_json::from_str(line).expect("JSON")).expect("a canonical form"))
        .collect();
    for (document, ours) in documents.iter().zip(&ours) {
        assert_eq!(canonical(document).as_ref(), Ok(ours), "the spelling of a document changed its value");
    }
    let Some(theirs) = python(DUMPS, lines) else { return };
    assert_eq!(theirs.len(), ours.len(), "python3 stopped early");
    for (number, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        assert_eq!(ours, theirs, "document {number}: ours on the left, CPython's on the right");
    }
    covers(&theirs);
}

/// A generator that stopped producing a trap would let the comparison pass for nothing.
#[track_caller]
fn covers(texts: &[String]) {
    let all = texts.join("\n");
    for trap in [
        "e-05",
        "e+16",
        "0.0001",
        "1000000000000000.0",
        "-0.0",
        "5e-324",
        "e-310",
        "e+308",
        "\\ud83d\\ude00",
        "\\udbff\\udfff",
        "\\u0000",
        "\\u007f",
        "\\u2028",
        "\\\\",
        "\\\"",
        "\\n",
        "{\"\":",
        "9223372036854775807",
        "-9223372036854775807",
        "[]",
        "{}",
    ] {
        assert!(all.contains(trap), "no document holds {trap}");
    }
    assert!(
        texts.iter().any(|text| text.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count() > 90),
        "no document is deep"
    );
}

/// The formula of source document 000, word for word, with the `sha256:` prefix that hashes carry everywhere.
const INTEGRITY: &str = r#"
import hashlib, json, sys

def compute_tool_integrity(tool_id, version, manifest, files):
    sorted_files = sorted(files, key=lambda f: f["path"])
    payload = {
        "tool_id": tool_id,
        "version": version,
        "manifest": manifest,
        "files": [
            {
                "path": f["path"],
                "sha256": f["sha256"],
                "is_executable": f.get("is_executable", False)
            }
            for f in sorted_files
        ]
    }
    canonical = json.dumps(payload, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()

for line in sys.stdin.buffer:
    print("sha256:" + compute_tool_integrity(*json.loads(line)))
"#;

#[test]
fn integrity_is_what_cpython_computes() {
    let mut generator = Generator::new(0x1d);
    let mut lines = Vec::new();
    let mut ours = Vec::new();
    for number in 0..times(600) {
        let id = ToolId::parse(&format!("data.tool_{number}")).expect("an id");
        let pre = ["", "-rc.1", "-alpha.7+build.5"][number % 3];
        let version = Version::parse(&format!("{}.{}.0{pre}", number % 7, number % 5)).expect("a version");
        let manifest = generator.map();
        let mut files = Vec::new();
        for file in 0..generator.below(6) {
            // The number keeps paths apart; anything before it puts their order to the test.
            let path = format!("{}{file}", generator.text());
            let sha256 = Digest::of(generator.text().as_bytes());
            files.push(FileEntry { path, sha256, is_executable: generator.below(2) == 0 });
        }
        lines.push(json!([id, version, manifest, files]).to_string());
        ours.push(integrity_of(&id, &version, &manifest, &files).expect("a hash").to_string());
    }
    let Some(theirs) = python(INTEGRITY, lines) else { return };
    assert_eq!(ours, theirs);
}
