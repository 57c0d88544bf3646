//! The committed fuzz corpus of shell commands, replayed: what once broke a reader, or was built to, never does again.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "../../../fuzz/src/shell.rs"]
mod bodies;

use std::path::Path;

fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/shell_command");
    let mut inputs: Vec<_> = std::fs::read_dir(folder)
        .expect("the corpus")
        .map(|entry| entry.expect("an input").path())
        .map(|path| (path.display().to_string(), std::fs::read(&path).expect("an input")))
        .collect();
    inputs.sort();
    inputs
}

#[test]
fn shell_commands() {
    let inputs = corpus();
    assert!(inputs.len() >= 50, "{} inputs", inputs.len());
    for (name, bytes) in inputs {
        let outcome = std::panic::catch_unwind(|| bodies::command(&bytes));
        assert!(outcome.is_ok(), "{name} breaks the target `shell_command`");
    }
}

/// Every prefix and many single-byte changes: the places where a reader is most easily surprised.
#[test]
fn every_cut_and_every_change() {
    for (_, bytes) in corpus().into_iter().filter(|(_, bytes)| bytes.len() < 200) {
        for at in 0..bytes.len() {
            bodies::command(&bytes[..at]);
            for byte in *b"\"'\\`$(){}<>|&;#\n =*!" {
                let mut changed = bytes.clone();
                changed[at] = byte;
                bodies::command(&changed);
            }
        }
    }
}

/// A reader that refuses everything would hold all the promises.
#[test]
fn many_of_them_are_understood() {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let inputs = corpus();
    let understood = inputs.iter().filter(|(_, bytes)| kiwi_gate::programs_of_line(&text(bytes)).is_some());
    assert!(understood.count() >= 20);
    assert_eq!(
        kiwi_gate::programs_of_line("env X=1 sh -c 'ls; cat y'").as_deref(),
        Some(&["ls".to_owned(), "cat y".to_owned()][..])
    );
    assert_eq!(kiwi_gate::programs_of_line("$X y"), None);
}
