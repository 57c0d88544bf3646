//! The committed fuzz corpora of κ, replayed: what once broke a reader, or was built to, never does again.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "../../../fuzz/src/rules.rs"]
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
fn lexer() {
    check("kappa_lexer", 40, bodies::lexer);
}

#[test]
fn parser() {
    check("kappa_parser", 40, bodies::parser);
}

#[test]
fn evaluator() {
    check("kappa_evaluator", 50, bodies::evaluator);
}

/// Every prefix and every single-byte change of a rich file: the places where a reader is most easily surprised.
#[test]
fn every_cut_and_every_change_of_a_rich_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/kappa_evaluator");
    for name in ["functions", "effects", "examples"] {
        let bytes = std::fs::read(folder.join(name)).expect("an input");
        for at in 0..bytes.len() {
            bodies::parser(&bytes[..at]);
            bodies::evaluator(&bytes[..at]);
            for byte in [0, b'"', b'{', b'}', b'(', b'$', b'-', b'9', 0xff] {
                let mut changed = bytes.clone();
                changed[at] = byte;
                bodies::lexer(&changed);
                bodies::evaluator(&changed);
            }
        }
    }
}
