//! Killed between any two writes, the store stays whole.

use kiwi_model::lockfile::{LockLink, LockRoot, Lockfile, short_chain_hash};
use kiwi_model::{Digest, Space, ToolId, Version};
use serde_json::Map;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::{LockEntry, Slot};
use crate::boundary;
use crate::spaces::{Locations, Spaces};

const ACT: &str = "KIWI_TEST_ACT";
const AT: &str = "KIWI_TEST_AT";
const FOLDER: &str = "KIWI_TEST_FOLDER";
const DAY: Duration = Duration::from_hours(24);
/// Tools whose lockfiles are there before; the last two have not been validated for long.
const TOOLS: [(&str, &str); 5] =
    [("data", "a"), ("data/deep", "b"), ("", "c"), ("old", "d"), ("old/er", "e")];
const STALE: [&str; 2] = ["d", "e"];
const ACTS: [&str; 6] = ["freeze", "update", "prune", "validate", "rebuild", "first"];

fn lock(category: &str, tool: &str, version: u64, content: &str) -> Lockfile {
    let integrity = Digest::of(content.as_bytes());
    let (tool_id, version) = (ToolId::parse(tool).expect("id"), Version::new(version, 0, 0));
    let link = LockLink {
        tool_id: tool_id.clone(),
        version: version.clone(),
        integrity,
        executor: None,
        space: Some(Space::Project),
        files: BTreeMap::new(),
        rest: Map::new(),
    };
    let chain_hash = short_chain_hash(std::slice::from_ref(&link));
    Lockfile {
        lockfile_version: 1,
        generated_at: "2026-01-01T00:00:00Z".into(),
        root: LockRoot { tool_id, version, integrity, category: category.into(), rest: Map::new() },
        chain_hash,
        resolved_chain: vec![link],
        environment: None,
        upstream: None,
        registry: None,
        rest: Map::new(),
    }
}

fn spaces(project: &Path) -> Spaces {
    Spaces::open(Locations { project: Some(project.into()), cwd: project.into(), user: None })
        .expect("spaces")
}

#[expect(clippy::disallowed_methods, reason = "a test stands in for a caller, who reads the clock")]
fn now() -> SystemTime {
    SystemTime::now()
}

fn entries(spaces: &Spaces) -> Vec<LockEntry> {
    spaces.locks().entries(Space::Project, None, &mut |_, _| {}).expect("entries").collect()
}

/// A store as it was before.
fn prepare(project: &Path, act: &str) {
    std::fs::create_dir(project.join(".ai")).expect("folder");
    let spaces = spaces(project);
    if act == "first" {
        return;
    }
    let mut writer = spaces.locks().writer(Space::Project).expect("writer");
    for (category, tool) in TOOLS {
        writer.save(&lock(category, tool, 1, "before"), Slot::Default).expect("saved");
    }
    writer.finish().expect("finished");
    let index = project.join(".ai/lockfiles/.index.json");
    if act == "rebuild" {
        return std::fs::remove_file(index).expect("removed");
    }
    let text = std::fs::read_to_string(&index).expect("index");
    let line = |line: &str| {
        let is_stale = STALE.iter().any(|tool| line.contains(&format!("{tool}@1.0.0.lock.json")));
        let (head, rest) = line.split_once("\"last_validated\":\"").unwrap_or((line, ""));
        match rest.split_once('"') {
            Some((_, tail)) if is_stale => {
                format!("{head}\"last_validated\":\"2020-01-01T00:00:00Z\"{tail}\n")
            }
            _ => format!("{line}\n"),
        }
    };
    std::fs::write(&index, text.lines().map(line).collect::<String>()).expect("aged");
}

/// What the process does that is killed.
fn act(spaces: &Spaces, act: &str) {
    let locks = spaces.locks();
    match act {
        "freeze" | "first" => {
            let mut writer = locks.writer(Space::Project).expect("writer");
            for (category, tool) in TOOLS {
                writer.save(&lock(category, tool, 1, "after"), Slot::Default).expect("saved");
            }
            writer.save(&lock("data", "a", 1, "beside"), Slot::Alternative).expect("saved");
            writer.finish().expect("finished");
        }
        "update" => {
            let all = entries(spaces);
            let mut writer = locks.writer(Space::Project).expect("writer");
            for entry in &all {
                let new = lock(&entry.category, entry.name.tool_id.as_str(), 2, "after");
                writer.save(&new, Slot::Default).expect("saved");
                writer.remove(&entry.key).expect("removed");
            }
            writer.finish().expect("finished");
        }
        "prune" => assert_eq!(locks.prune(Space::Project, DAY * 90, now(), false).expect("pruned").len(), 2),
        "validate" => {
            let all = entries(spaces);
            let keys = all.iter().map(|entry| entry.key.as_str());
            locks.validated(Space::Project, keys, now() + Duration::from_millis(50)).expect("validated");
        }
        "rebuild" => assert_eq!(locks.rebuild(Space::Project, &mut |_, _| {}).expect("rebuilt"), TOOLS.len()),
        other => panic!("no such act: {other}"),
    }
}

/// Whatever happened: everything is there, old or new, whole, and the store goes on working.
fn check(project: &Path, act: &str, at: u64) {
    let spaces = spaces(project);
    let listed = entries(&spaces);
    let mut seen = BTreeSet::new();
    for entry in &listed {
        assert_eq!(entry.problem, None, "{act} at {at}: {}", entry.key);
        let stored = spaces.locks().open(entry).expect("stored");
        let known = ["before", "after", "beside"].map(|content| Digest::of(content.as_bytes()));
        assert!(known.contains(&stored.lock.root.integrity), "{act} at {at}: {}", entry.key);
        seen.insert(entry.name.tool_id.to_string());
    }
    let may_be_gone = |tool: &str| act == "first" || (act == "prune" && STALE.contains(&tool));
    for (_, tool) in TOOLS {
        assert!(seen.contains(tool) || may_be_gone(tool), "{act} at {at}: `{tool}` was lost");
    }
    spaces.locks().save(Space::Project, &lock("next", "f", 1, "before"), Slot::Default).expect("saved");
    let files = walk(&project.join(".ai/lockfiles"));
    assert!(!files.iter().any(|file| file.contains("/.new-")), "{act} at {at}: {files:?}");
    let again: BTreeSet<String> = entries(&spaces).into_iter().map(|entry| entry.key).collect();
    assert_eq!(again.len(), listed.len() + 1, "{act} at {at}: {again:?}");
}

fn walk(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("folder").map(|entry| entry.expect("entry").path());
    entries
        .flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path.to_string_lossy().into_owned()] })
        .collect()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the process that is killed is this test again")]
fn killed_between_any_two_writes_nothing_is_lost() {
    if let (Ok(what), Ok(at), Ok(folder)) = (std::env::var(ACT), std::env::var(AT), std::env::var(FOLDER)) {
        let spaces = spaces(Path::new(&folder));
        boundary::die_at(at.parse().expect("number"));
        return act(&spaces, &what);
    }
    // Each waits for its disk most of the time.
    std::thread::scope(|scope| {
        for what in ACTS {
            scope.spawn(move || kill_at_each_point(what));
        }
    });
}

#[expect(clippy::disallowed_methods, reason = "the process that is killed is this test again")]
fn kill_at_each_point(what: &str) {
    let mut kills = 0;
    loop {
        let project = tempfile::tempdir().expect("folder");
        prepare(project.path(), what);
        let at = kills + 1;
        let status = std::process::Command::new(std::env::current_exe().expect("test"))
            .args(["--exact", "locks::crash::killed_between_any_two_writes_nothing_is_lost"])
            .env(ACT, what)
            .env(AT, at.to_string())
            .env(FOLDER, project.path())
            .stdout(std::process::Stdio::null())
            .status()
            .expect("started");
        check(project.path(), what, at);
        if status.success() {
            break;
        }
        assert_eq!(status.signal(), Some(9), "{what} at {at}: {status}");
        kills = at;
    }
    println!("{what}: killed at each of {kills} points");
    assert!(kills >= 5, "{what} has more points than {kills}");
}
