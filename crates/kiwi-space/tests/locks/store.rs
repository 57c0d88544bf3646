//! Lockfiles for tests, and the store they lie in.

use kiwi_model::lockfile::{LockLink, LockRoot, Lockfile, short_chain_hash};
use kiwi_model::{Digest, Space};
use kiwi_space::{LockEntry, SaveOutcome, Saved, Slot, Spaces, Stored};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::common::{Ground, id, version};

pub const AT: &str = "2026-01-24T12:00:00Z";
pub const DAY: Duration = Duration::from_hours(24);

/// A lockfile over two links. `content` is what the tool is made of: another one gives another chain.
pub fn lock_of(category: &str, tool: &str, number: &str, content: &str) -> Lockfile {
    let link = |name: &str, number: &str, content: &str, executor: Option<&str>| LockLink {
        tool_id: id(name),
        version: version(number),
        integrity: Digest::of(content.as_bytes()),
        executor: executor.map(id),
        space: Some(Space::System),
        files: BTreeMap::new(),
        rest: Map::new(),
    };
    let resolved_chain =
        vec![link(tool, number, content, Some("subprocess")), link("subprocess", "1.0.0", "primitive", None)];
    Lockfile {
        lockfile_version: 1,
        generated_at: AT.into(),
        root: LockRoot {
            tool_id: id(tool),
            version: version(number),
            integrity: Digest::of(content.as_bytes()),
            category: category.into(),
            rest: Map::new(),
        },
        chain_hash: short_chain_hash(&resolved_chain),
        resolved_chain,
        environment: None,
        upstream: None,
        registry: None,
        rest: Map::new(),
    }
}

pub fn lock(category: &str, tool: &str, number: &str) -> Lockfile {
    lock_of(category, tool, number, "x")
}

#[expect(clippy::disallowed_methods, reason = "tests compare with what the file system says")]
pub fn now() -> SystemTime {
    SystemTime::now()
}

/// A time of the index.
pub fn rfc3339(time: SystemTime) -> String {
    jiff::Timestamp::try_from(time).expect("time").to_string()
}

pub fn modified(path: &Path) -> SystemTime {
    fs::metadata(path).expect("metadata").modified().expect("mtime")
}

pub fn age(path: &Path, days: u32) -> SystemTime {
    let at = now() - DAY * days;
    fs::File::options().write(true).open(path).expect("file").set_modified(at).expect("mtime");
    at
}

/// Writes a file as another program would have at a certain time.
pub fn written_at(path: &Path, text: &str, at: SystemTime) {
    fs::write(path, text).expect("written");
    fs::File::options().write(true).open(path).expect("file").set_modified(at).expect("mtime");
}

pub fn save(spaces: &Spaces, lock: &Lockfile) -> Saved {
    spaces.locks().save(Space::Project, lock, Slot::Default).unwrap_or_else(|error| panic!("{error}"))
}

/// Saves into the project with a store opened for it alone.
pub fn created(ground: &Ground, category: &str, tool: &str, number: &str) -> PathBuf {
    let saved = save(&ground.spaces(), &lock(category, tool, number));
    assert_eq!(saved.outcome, SaveOutcome::Created);
    saved.path
}

pub fn load(spaces: &Spaces, category: &str, tool: &str, number: &str) -> Option<Stored> {
    spaces.locks().load(category, &id(tool), &version(number)).unwrap_or_else(|error| panic!("{error}"))
}

pub fn entries(ground: &Ground) -> Vec<LockEntry> {
    read_by(ground).0
}

/// The entries, and how many files were read for them.
pub fn read_by(ground: &Ground) -> (Vec<LockEntry>, usize) {
    let mut read = 0;
    let spaces = ground.spaces();
    let found = spaces
        .locks()
        .entries(Space::Project, None, &mut |done, total| {
            assert!(done == read + 1 && done <= total, "{done} of {total}");
            read = done;
        })
        .unwrap_or_else(|error| panic!("{error}"))
        .collect();
    (found, read)
}

/// Waits until the file system's clock has ticked and lets a listing write the index anew: then it doubts no file.
pub fn settle(ground: &Ground) {
    let modified = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).expect("time");
    let (index, probe) = (index_path(ground), ground.ai("probe"));
    loop {
        std::thread::sleep(Duration::from_millis(30));
        fs::write(&probe, "").expect("probe");
        if modified(&probe) > modified(&index) {
            break;
        }
    }
    fs::remove_file(&probe).expect("probe");
    entries(ground);
}

pub fn keys(entries: &[LockEntry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.key.as_str()).collect()
}

pub fn index_path(ground: &Ground) -> PathBuf {
    ground.ai("lockfiles/.index.json")
}

pub fn index(ground: &Ground) -> Value {
    let text = fs::read_to_string(index_path(ground)).expect("index");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// When the index was written, by its own word.
pub fn updated_at(ground: &Ground) -> SystemTime {
    let value = index(ground);
    let at: jiff::Timestamp = value["updated_at"].as_str().expect("time").parse().expect("RFC 3339");
    at.into()
}

/// Changes the index behind Kiwi's back.
pub fn edit_index(ground: &Ground, edit: impl FnOnce(&mut Value)) {
    let mut value = index(ground);
    edit(&mut value);
    fs::write(index_path(ground), value.to_string()).expect("index");
}
