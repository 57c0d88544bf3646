//! Letting go of what nobody uses any more, and of nothing else.

use kiwi_model::Space;
use kiwi_space::LockEntry;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;

use crate::common::Ground;
use crate::store::*;

fn prune(ground: &Ground, days: u32, dry_run: bool) -> Vec<LockEntry> {
    ground
        .spaces()
        .locks()
        .prune(Space::Project, DAY * days, now(), dry_run)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Makes a lockfile that was last good so many days ago, by the word of the index.
fn unused_for(ground: &Ground, category: &str, tool: &str, days: u32) {
    let path = created(ground, category, tool, "1.0.0");
    age(&path, days);
    let key = format!("{category}/{tool}@1.0.0");
    edit_index(ground, |value| {
        value["lockfiles"][key]["last_validated"] = json!(rfc3339(now() - DAY * days));
    });
}

#[test]
fn old_ones_go_with_their_empty_folders_and_a_dry_run_only_says_so() {
    let ground = Ground::new();
    unused_for(&ground, "data/csv/deep", "old", 100);
    unused_for(&ground, "data", "older", 200);
    unused_for(&ground, "data", "young", 80);
    unused_for(&ground, "alone", "old", 91);
    let before = fs::read_to_string(index_path(&ground)).expect("index");
    let would = prune(&ground, 90, true);
    assert_eq!(keys(&would), ["alone/old@1.0.0", "data/csv/deep/old@1.0.0", "data/older@1.0.0"]);
    assert_eq!(fs::read_to_string(index_path(&ground)).expect("index"), before);
    assert_eq!(entries(&ground).len(), 4);
    assert_eq!(prune(&ground, 90, false), would);
    assert_eq!(keys(&entries(&ground)), ["data/young@1.0.0"]);
    assert_eq!(index(&ground)["lockfiles"].as_object().expect("lines").len(), 1);
    assert!(ground.ai("lockfiles/data").is_dir());
    assert!(!ground.ai("lockfiles/data/csv").exists() && !ground.ai("lockfiles/alone").exists());
    assert!(prune(&ground, 90, false).is_empty());
    assert!(prune(&ground, u32::MAX, false).is_empty());
    assert_eq!(prune(&ground, 10, false).len(), 1);
    assert!(ground.ai("lockfiles").is_dir() && !ground.spaces().locks().any());
}

#[test]
fn broken_and_unknown_files_stay_and_so_do_their_folders() {
    let ground = Ground::new();
    unused_for(&ground, "data", "broken", 100);
    unused_for(&ground, "data", "old", 100);
    unused_for(&ground, "notes", "old", 100);
    let path = ground.write("lockfiles/data/broken@1.0.0.lock.json", "<<<<<<< HEAD\n");
    age(&path, 100);
    ground.write("lockfiles/notes/README.md", "keep me");
    // Broken behind the back of an index that still calls it good.
    assert_eq!(index(&ground)["lockfiles"].as_object().expect("lines").len(), 3);
    let removed = prune(&ground, 90, false);
    assert_eq!(keys(&removed), ["data/old@1.0.0", "notes/old@1.0.0"]);
    assert!(path.exists() && ground.ai("lockfiles/notes/README.md").exists());
    age(&path, 1000);
    fs::remove_file(index_path(&ground)).expect("index");
    assert!(prune(&ground, 0, false).is_empty() && path.exists());
    assert_eq!(keys(&entries(&ground)), ["data/broken@1.0.0"]);
}

#[test]
fn one_that_is_used_stays() {
    let ground = Ground::new();
    unused_for(&ground, "data", "a", 100);
    unused_for(&ground, "data", "b", 100);
    let spaces = ground.spaces();
    let stored = load(&spaces, "data", "a", "1.0.0").expect("stored");
    std::thread::sleep(std::time::Duration::from_millis(30));
    spaces.locks().touch(&stored, now());
    assert_eq!(keys(&prune(&ground, 90, true)), ["data/b@1.0.0"]);
    spaces.locks().validated(Space::Project, ["data/b@1.0.0"], now()).expect("validated");
    assert!(prune(&ground, 90, false).is_empty());
}

#[test]
fn a_rebuild_never_makes_prune_remove_more() {
    let ground = Ground::new();
    for (number, days) in [10, 89, 91, 200, 400].into_iter().enumerate() {
        unused_for(&ground, "data", &format!("t{number}"), days);
    }
    // Times that contradict each other: validated lately or set by hand, while the file is old, or the other way.
    let spaces = ground.spaces();
    spaces.locks().validated(Space::Project, ["data/t3@1.0.0"], now() - DAY).expect("validated");
    edit_index(&ground, |value| {
        value["lockfiles"]["data/t0@1.0.0"]["last_validated"] = json!(rfc3339(now() - DAY * 300));
    });
    for days in [1, 30, 90, 150, 300, 500] {
        let doomed = |entries: Vec<LockEntry>| -> BTreeSet<String> {
            entries.into_iter().map(|entry| entry.key).collect()
        };
        let before = doomed(prune(&ground, days, true));
        let kept = fs::read(index_path(&ground)).expect("index");
        spaces.locks().rebuild(Space::Project, &mut |_, _| {}).expect("rebuilt");
        assert!(doomed(prune(&ground, days, true)).is_subset(&before), "{days} days, rebuilt");
        fs::remove_file(index_path(&ground)).expect("index");
        assert!(doomed(prune(&ground, days, true)).is_subset(&before), "{days} days, index lost");
        fs::write(index_path(&ground), kept).expect("index");
    }
}

#[test]
fn without_a_store_there_is_nothing_to_do_and_nothing_is_made() {
    let ground = Ground::new();
    let spaces = ground.spaces();
    let locks = spaces.locks();
    assert!(prune(&ground, 0, false).is_empty() && entries(&ground).is_empty());
    locks.validated(Space::Project, ["a@1.0.0"], now()).expect("validated");
    assert_eq!(locks.rebuild(Space::Project, &mut |_, _| {}).expect("rebuilt"), 0);
    assert!(!ground.ai("lockfiles").exists());
}
