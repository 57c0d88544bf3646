//! The committed fuzz corpora of what servers send, replayed: what once broke a reader, or was built to, never does again.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "../../../fuzz/src/mcp.rs"]
mod bodies;

use std::path::Path;

fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut inputs: Vec<_> = std::fs::read_dir(folder)
        .expect("the corpus")
        .map(|entry| entry.expect("an input").path())
        .map(|path| (path.display().to_string(), std::fs::read(&path).expect("an input")))
        .collect();
    inputs.sort();
    inputs
}

fn replay(target: &str, least: usize, body: fn(&[u8])) {
    let inputs = corpus(target);
    assert!(inputs.len() >= least, "{} inputs", inputs.len());
    for (name, bytes) in &inputs {
        let outcome = std::panic::catch_unwind(|| body(bytes));
        assert!(outcome.is_ok(), "{name} breaks the target `{target}`");
    }
    // Every cut, and many single-byte changes: the places where a reader is most easily surprised.
    for (_, bytes) in inputs.iter().filter(|(_, bytes)| bytes.len() < 200) {
        for at in 0..bytes.len() {
            body(&bytes[..at]);
            for byte in *b"\"{}[]:,\n0-" {
                let mut changed = bytes.clone();
                changed[at] = byte;
                body(&changed);
            }
        }
    }
}

#[test]
fn frames() {
    replay("mcp_frames", 40, bodies::frames);
}

#[test]
fn definitions() {
    replay("mcp_definition", 30, bodies::definition);
}

/// Readers that refuse everything would hold all the promises.
#[test]
fn many_of_them_are_understood() {
    let understood =
        corpus("mcp_frames").iter().filter(|(_, bytes)| kiwi_mcp::fuzzed::frames(bytes) > 0).count();
    assert!(understood >= 15, "{understood}");
    let made = corpus("mcp_definition")
        .iter()
        .filter(|(_, bytes)| kiwi_mcp::fuzzed::definition(bytes).is_some())
        .count();
    assert!(made >= 12, "{made}");
}
