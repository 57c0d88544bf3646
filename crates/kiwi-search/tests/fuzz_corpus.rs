//! The committed fuzz corpus of texts, replayed: what once broke the embedder, or was built to, never does again.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "../../../fuzz/src/embed.rs"]
mod bodies;

use kiwi_search::StaticEmbedder;
use std::path::Path;

fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/embed_text");
    let mut inputs: Vec<_> = std::fs::read_dir(folder)
        .expect("the corpus")
        .map(|entry| entry.expect("an input").path())
        .map(|path| (path.display().to_string(), std::fs::read(&path).expect("an input")))
        .collect();
    inputs.sort();
    inputs
}

#[test]
fn texts() {
    let inputs = corpus();
    assert!(inputs.len() >= 40, "{} inputs", inputs.len());
    for (name, bytes) in &inputs {
        let outcome = std::panic::catch_unwind(|| bodies::text(bytes));
        assert!(outcome.is_ok(), "{name} breaks the target");
    }
    // Every cut, and many single-byte changes: the places where a reader is most easily surprised.
    for (_, bytes) in inputs.iter().filter(|(_, bytes)| bytes.len() < 100) {
        for at in 0..bytes.len() {
            bodies::text(&bytes[..at]);
            for byte in *b"aZ0 #\xcc\xff" {
                let mut changed = bytes.clone();
                changed[at] = byte;
                bodies::text(&changed);
            }
        }
    }
}

/// An embedder that knows nothing would hold all the promises.
#[test]
fn most_of_them_have_tokens() {
    let has = |bytes: &[u8]| !StaticEmbedder::new().tokens(&String::from_utf8_lossy(bytes)).is_empty();
    let known = corpus().iter().filter(|(_, bytes)| has(bytes)).count();
    assert!(known >= 30, "{known}");
}
