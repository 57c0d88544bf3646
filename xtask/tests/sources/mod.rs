//! What the sources of the rooms may hold.

use std::path::{Path, PathBuf};

use super::root;

/// Rooms where decisions are made: no clock, no files, no environment, no network, no chance.
const PURE: [&str; 3] = ["kiwi-model", "kiwi-rules", "kiwi-chain"];
/// What would make a decision depend on anything but its inputs.
const IMPURE: [&str; 10] = [
    "SystemTime",
    "Instant",
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "std::thread::sleep",
    "fs_err",
    "rand::",
    "RandomState",
];
/// A file over this wants a second room; tests live in files of their own.
const LONGEST: usize = 600;

/// The only files that may go beyond what the compiler can check; each use says why it is sound.
const UNSAFE: [&str; 18] = [
    "kiwi-exec/src/rest.rs",
    // The launcher asks the kernel itself.
    "kiwi-launcher/src/kernel/clock.rs",
    "kiwi-launcher/src/kernel/descriptors.rs",
    "kiwi-launcher/src/kernel/landlock.rs",
    "kiwi-launcher/src/kernel/memory.rs",
    "kiwi-launcher/src/kernel/mounts.rs",
    "kiwi-launcher/src/kernel/namespaces.rs",
    "kiwi-launcher/src/kernel/processes.rs",
    "kiwi-launcher/src/kernel/processors.rs",
    "kiwi-launcher/src/kernel/raw.rs",
    "kiwi-launcher/src/kernel/seccomp.rs",
    "kiwi-launcher/src/kernel/signals.rs",
    // And has no C library that would do this for it.
    "kiwi-launcher/src/program/bytes.rs",
    "kiwi-launcher/src/program/entry.rs",
    "kiwi-launcher/src/program/main.rs",
    "kiwi-launcher/src/program/room.rs",
    "kiwi-search/src/embed/minilm/matrix.rs",
    "kiwi-search/src/vectors/processor.rs",
];

/// Every Rust file below a folder, sorted.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return files };
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn crates() -> Vec<PathBuf> {
    let mut crates: Vec<PathBuf> = std::fs::read_dir(root().join("crates"))
        .expect("crates")
        .map(|entry| entry.expect("a crate").path())
        .collect();
    crates.retain(|folder| folder.join("Cargo.toml").is_file());
    crates.sort();
    crates
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).expect("a source file")
}

/// The line without its comment. Good enough for a scan: a `//` inside a string hides the rest of that line only.
fn code(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _)| code)
}

/// Whether a line of code holds a word, and not as part of a longer one.
fn holds(code: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        !before.is_some_and(part) && (word.ends_with(':') || !after.is_some_and(part))
    })
}

#[test]
fn every_room_says_what_it_owns() {
    for folder in crates() {
        let opening = ["src/lib.rs", "src/main.rs"]
            .map(|file| folder.join(file))
            .into_iter()
            .find(|file| file.is_file());
        let opening =
            opening.unwrap_or_else(|| panic!("{} has neither lib.rs nor main.rs", folder.display()));
        assert!(
            read(&opening).starts_with("//! "),
            "{} must open with what the crate owns",
            opening.display()
        );
    }
}

#[test]
fn no_file_outgrows_its_room() {
    for folder in crates() {
        for file in rust_files(&folder.join("src")) {
            let is_test = file.file_name().is_some_and(|name| name == "tests.rs")
                || file.components().any(|part| part.as_os_str() == "tests");
            let lines = read(&file).lines().count();
            assert!(
                is_test || lines <= LONGEST,
                "{} has {lines} lines; {LONGEST} is the most",
                file.display()
            );
        }
    }
}

#[test]
fn decisions_are_pure() {
    let mut found = Vec::new();
    for room in PURE {
        for file in rust_files(&root().join("crates").join(room).join("src")) {
            for (number, line) in read(&file).lines().enumerate() {
                for word in IMPURE.iter().filter(|word| holds(code(line), word)) {
                    found.push(format!("{}:{}: `{word}` in a room of decisions", file.display(), number + 1));
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn what_the_compiler_cannot_check_is_in_listed_files_with_a_reason() {
    for file in crates().iter().flat_map(|folder| rust_files(folder)) {
        let text = read(&file);
        let lines: Vec<&str> = text.lines().collect();
        let is_use = |line: &str| holds(code(line), "unsafe") || code(line).contains("(unsafe_code");
        for (number, line) in lines.iter().enumerate().filter(|(_, line)| is_use(line)) {
            let at = format!("{}:{}", file.display(), number + 1);
            assert!(
                UNSAFE.iter().any(|listed| file.ends_with(listed)),
                "{at}: `unsafe` in a file that is not listed"
            );
            let is_told = number > 0 && lines[number - 1].trim_start().starts_with("// SAFETY: ");
            assert!(
                is_told || line.starts_with("#!["),
                "{at}: `unsafe` without a `// SAFETY:` line before it"
            );
        }
    }
}

#[test]
fn the_scan_itself_sees_what_it_should() {
    for (line, word, expect) in [
        ("let now = std::time::Instant::now();", "Instant", true),
        ("use std::fs;", "std::fs", true),
        ("use std::fs::File;", "std::fs", true),
        ("let operand = 3; // rand::random", "rand::", false),
        ("let x = operand::new();", "rand::", false),
        ("rand::random()", "rand::", true),
        ("let instant_of = 1;", "Instant", false),
    ] {
        assert_eq!(holds(code(line), word), expect, "{line}");
    }
}
