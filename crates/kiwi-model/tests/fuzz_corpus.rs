//! The committed fuzz corpora, replayed: what once broke a reader, or was built to, never does again.
#![expect(clippy::expect_used, clippy::panic, reason = "a test states what must hold by panicking")]

#[path = "../../../fuzz/src/lib.rs"]
mod bodies;

use std::path::Path;

#[track_caller]
fn check(target: &str, at_least: usize, body: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut inputs: Vec<_> = std::fs::read_dir(&folder)
        .expect("the corpus")
        .map(|entry| entry.expect("an input").path())
        .collect();
    inputs.sort();
    assert!(inputs.len() >= at_least, "{} inputs in {}", inputs.len(), folder.display());
    for input in inputs {
        let bytes = std::fs::read(&input).expect("an input");
        let outcome = std::panic::catch_unwind(|| body(&bytes));
        assert!(outcome.is_ok(), "{} breaks the target `{target}`", input.display());
    }
}

#[test]
fn manifests() {
    check("manifest", 24, bodies::manifest);
}

#[test]
fn yaml() {
    check("yaml", 24, bodies::yaml);
}

#[test]
fn canonical_json() {
    check("canonical", 24, bodies::json);
}

#[test]
fn lockfiles() {
    check("lockfile", 24, bodies::lockfile);
}

#[test]
fn audit_lines() {
    check("audit_line", 24, bodies::audit_line);
}
