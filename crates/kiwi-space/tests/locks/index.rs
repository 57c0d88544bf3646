//! The index: right when it is there, made again when it is not, and never believed against the files.

use kiwi_model::Space;
use kiwi_space::Slot;
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

use crate::common::{Ground, id, version};
use crate::store::*;

/// Four lockfiles with a good index, and what a listing of them gives.
fn four() -> (Ground, Vec<kiwi_space::LockEntry>) {
    let ground = Ground::new();
    for (category, tool) in [("", "top"), ("data", "a"), ("data/csv", "b"), ("database", "c")] {
        created(&ground, category, tool, "1.0.0");
    }
    let alternative = lock_of("data", "a", "1.0.0", "docker");
    ground.spaces().locks().save(Space::Project, &alternative, Slot::Alternative).expect("alternative");
    settle(&ground);
    let (listed, read) = read_by(&ground);
    assert_eq!((listed.len(), read), (5, 0));
    (ground, listed)
}

/// A listing gives the same as before, and so does the index on disk; once the clock has ticked no file is read.
#[track_caller]
fn healed(ground: &Ground, before: &[kiwi_space::LockEntry]) {
    let told = |entries: &[kiwi_space::LockEntry]| -> Vec<_> {
        entries
            .iter()
            .map(|entry| (entry.key.clone(), entry.chain_hash.clone(), entry.problem.clone()))
            .collect()
    };
    let after = entries(ground);
    assert_eq!(told(&after), told(before));
    let value = index(ground);
    let lines = value["lockfiles"].as_object().expect("lines");
    assert_eq!(lines.keys().map(String::as_str).collect::<Vec<_>>(), keys(&after));
    for entry in &after {
        let line = &lines[&entry.key];
        assert_eq!(
            *line,
            json!({"path": entry.path, "chain_hash": entry.chain_hash, "created_at": entry.created_at,
                   "last_validated": entry.last_validated, "scope": "project"})
        );
        assert_eq!(entry.created_at, AT);
        assert!(ground.ai("lockfiles").join(&entry.path).is_file());
    }
    settle(ground);
    let (again, read) = read_by(ground);
    assert_eq!((again.as_slice(), read), (after.as_slice(), 0));
}

#[test]
fn the_index_is_as_agreed() {
    let (ground, listed) = four();
    let text = fs::read_to_string(index_path(&ground)).expect("index");
    let value = index(&ground);
    assert_eq!(value["version"], "1");
    let updated = value["updated_at"].as_str().expect("time");
    assert!(updated.ends_with('Z') && updated.contains('.'), "{updated}");
    assert!(text.ends_with("}\n") && text.lines().count() == 5 + listed.len() + 1, "{text}");
    for entry in &listed {
        let line = text.lines().find(|line| line.contains(&entry.path)).expect("line");
        assert!(line.contains("\"scope\"") && line.contains("\"last_validated\""), "{line}");
    }
    let hash = lock_of("data", "a", "1.0.0", "docker").chain_hash;
    let all = [
        "data/a@1.0.0",
        &format!("data/a@1.0.0.{hash}"),
        "data/csv/b@1.0.0",
        "database/c@1.0.0",
        "top@1.0.0",
    ];
    assert_eq!(keys(&listed), all);
    healed(&ground, &listed);
}

#[test]
fn a_category_holds_what_is_below_it_and_nothing_that_only_sounds_alike() {
    let (ground, _) = four();
    let spaces = ground.spaces();
    let count = |category| {
        spaces.locks().entries(Space::Project, Some(category), &mut |_, _| {}).expect("entries").count()
    };
    assert_eq!(
        (count("data"), count("data/csv"), count("database"), count(""), count("none")),
        (3, 1, 1, 5, 0)
    );
    assert_eq!(spaces.locks().of(&id("a")).expect("of").len(), 2);
}

#[test]
fn a_missing_or_corrupt_index_is_made_again() {
    let (ground, before) = four();
    fs::remove_file(index_path(&ground)).expect("index");
    let (_, read) = read_by(&ground);
    assert_eq!(read, 5, "progress was told");
    healed(&ground, &before);
    let good = fs::read_to_string(index_path(&ground)).expect("index");
    for corrupt in [
        "",
        "{",
        "null",
        "[]",
        "\u{0}\u{1}",
        &good[..good.len() / 2],
        &good.replace("\"version\": \"1\"", "\"version\": \"2\""),
        &good.replace("\"version\": \"1\"", "\"version\": 1"),
        &good.replace("\"chain_hash\":\"", "\"chain_hash\":[],\"x\":\""),
        &good.replace("\"updated_at\": \"2", "\"updated_at\": \"9"),
        &good.replace("\"updated_at\": \"2", "\"updated_at\": \"x"),
    ] {
        fs::write(index_path(&ground), corrupt).expect("index");
        healed(&ground, &before);
    }
}

#[test]
fn an_index_that_lies_is_found_out() {
    let (ground, before) = four();
    let hash = lock_of("data", "a", "1.0.0", "docker").chain_hash;
    let lies: [&dyn Fn(&mut Value); 13] = [
        &|lines| lines["data/a@1.0.0"]["path"] = json!("data/csv/b@1.0.0.lock.json"),
        &|lines| lines["data/a@1.0.0"]["path"] = json!("../../../../etc/passwd"),
        &|lines| lines["data/a@1.0.0"]["scope"] = json!("user"),
        &|lines| lines["data/a@1.0.0"]["chain_hash"] = json!("short"),
        &|lines| lines["data/a@1.0.0"]["chain_hash"] = json!("3F9C0A1B2C4D"),
        &|lines| lines[format!("data/a@1.0.0.{hash}")]["chain_hash"] = json!("3f9c0a1b2c4d"),
        &|lines| lines["data/a@1.0.0"]["created_at"] = json!("yesterday"),
        &|lines| lines["data/a@1.0.0"]["last_validated"] = json!("2026-13-40T99:00:00Z"),
        &|lines| lines["data/a@1.0.0"]["last_validated"] = json!("9999-01-01T00:00:00Z"),
        &|lines| lines["data/a@1.0.0"] = json!({}),
        &|lines| {
            lines.as_object_mut().expect("lines").remove("data/a@1.0.0");
        },
        &|lines| {
            let line = lines["data/a@1.0.0"].clone();
            lines["data/gone@1.0.0"] = line.clone();
            lines["../a@1.0.0"] = line;
        },
        &|lines| {
            lines["data/gone@1.0.0"] = json!({"path": "data/gone@1.0.0.lock.json", "chain_hash": "3f9c0a1b2c4d",
                "created_at": AT, "last_validated": AT, "scope": "project"});
        },
    ];
    for lie in lies {
        edit_index(&ground, |value| lie(&mut value["lockfiles"]));
        healed(&ground, &before);
    }
    // A lone lie about a file that is gone.
    for entry in &before {
        fs::remove_file(ground.ai("lockfiles").join(&entry.path)).expect("removed");
    }
    healed(&ground, &[]);
}

#[test]
fn files_that_came_went_or_changed_by_other_hands_are_seen() {
    let (ground, _) = four();
    std::thread::sleep(Duration::from_millis(30));
    let other = lock_of("data", "a", "1.0.0", "by git");
    let path = ground.write("lockfiles/data/a@1.0.0.lock.json", other.to_text());
    ground.write("lockfiles/new/deep/n@2.0.0.lock.json", lock("new/deep", "n", "2.0.0").to_text());
    fs::remove_file(ground.ai("lockfiles/top@1.0.0.lock.json")).expect("removed");
    let (listed, read) = read_by(&ground);
    assert_eq!((listed.len(), read), (5, 2));
    let find = |key: &str| listed.iter().find(|entry| entry.key == key);
    assert_eq!(find("data/a@1.0.0").expect("listed").chain_hash, other.chain_hash);
    assert_eq!(find("data/a@1.0.0").expect("listed").last_validated, rfc3339(modified(&path)));
    assert!(find("new/deep/n@2.0.0").is_some() && find("top@1.0.0").is_none());
    healed(&ground, &listed);
}

/// Another program writes within the tick of the clock in which the index was written.
#[test]
fn a_change_within_the_tick_of_the_index_is_seen() {
    let other = lock_of("data", "a", "1.0.0", "by other hands");
    let good = other.to_text();
    let longer = format!("{good}\n\n");
    for (text, expect) in [
        (good.as_str(), Some(other.chain_hash.as_str())),
        (longer.as_str(), Some(other.chain_hash.as_str())),
        ("<<<<<<< HEAD\n", None),
    ] {
        let (ground, _) = four();
        let path = ground.ai("lockfiles/data/a@1.0.0.lock.json");
        let before = fs::metadata(&path).expect("metadata").len();
        assert_eq!(before == text.len() as u64, text == good, "the size alone may tell nothing");
        written_at(&path, text, updated_at(&ground));
        let (listed, read) = read_by(&ground);
        assert_eq!(read, 1, "only what is in doubt");
        let entry = listed.iter().find(|entry| entry.key == "data/a@1.0.0").expect("listed");
        assert_eq!(
            (entry.problem.is_none(), entry.chain_hash.as_str()),
            (expect.is_some(), expect.unwrap_or(""))
        );
        if expect.is_some() {
            healed(&ground, &listed);
        }
    }
}

#[test]
fn a_doubt_that_proves_unfounded_changes_no_time_and_ends() {
    let (ground, _) = four();
    let path = ground.ai("lockfiles/data/a@1.0.0.lock.json");
    let by_hand = "2026-02-03T04:05:06Z";
    edit_index(&ground, |value| value["lockfiles"]["data/a@1.0.0"]["last_validated"] = json!(by_hand));
    let at = updated_at(&ground);
    written_at(&path, &fs::read_to_string(&path).expect("text"), at);
    let told = || {
        let (listed, read) = read_by(&ground);
        let entry = listed.into_iter().find(|entry| entry.key == "data/a@1.0.0").expect("listed");
        (entry.last_validated, read)
    };
    assert_eq!(told(), (by_hand.to_owned(), 1));
    settle(&ground);
    let text = fs::read_to_string(index_path(&ground)).expect("index");
    for _ in 0..2 {
        assert_eq!(told(), (by_hand.to_owned(), 0));
    }
    assert_eq!(fs::read_to_string(index_path(&ground)).expect("index"), text, "written once");
    assert_eq!(modified(&path), at);
}

#[test]
fn what_is_no_lockfile_is_left_alone() {
    let (ground, before) = four();
    for odd in [
        "README.md",
        "data/a@1.0.lock.json",
        "data/notes.txt",
        "data/A@1.0.0.lock.json",
        ".hidden/a@1.0.0.lock.json",
    ] {
        ground.write(&format!("lockfiles/{odd}"), "odd");
    }
    fs::create_dir_all(ground.ai("lockfiles/data/x@1.0.lock.json")).expect("folder");
    healed(&ground, &before);
    created(&ground, "data", "z", "1.0.0");
    assert!(ground.ai("lockfiles/README.md").exists() && ground.ai("lockfiles/data/notes.txt").exists());
}

#[test]
fn the_time_of_validation_follows_the_file_unless_a_person_set_it() {
    let ground = Ground::new();
    let path = created(&ground, "data", "a", "1.0.0");
    let told = || entries(&ground)[0].last_validated.clone();
    assert_eq!(told(), rfc3339(modified(&path)));
    // Set by hand: untouched files are not asked.
    let by_hand = "2026-02-03T04:05:06Z";
    edit_index(&ground, |value| value["lockfiles"]["data/a@1.0.0"]["last_validated"] = json!(by_hand));
    assert_eq!((told().as_str(), told().as_str()), (by_hand, by_hand));
    // Used since: the later one counts.
    std::thread::sleep(Duration::from_millis(30));
    let spaces = ground.spaces();
    fs::File::options().write(true).open(&path).expect("file").set_modified(now()).expect("mtime");
    assert_eq!(told(), rfc3339(modified(&path)));
    // From the file alone: never older than it was made, never in the future.
    let from_file = || {
        fs::remove_file(index_path(&ground)).expect("index");
        told()
    };
    age(&path, 10 * 365);
    assert_eq!(from_file(), AT);
    let future = now() + DAY * 400;
    fs::File::options().write(true).open(&path).expect("file").set_modified(future).expect("mtime");
    let (before, said, after) = (rfc3339(now()), from_file(), rfc3339(now()));
    assert!(before <= said && said <= after, "{before} {said} {after}");
    let mut later = lock("data", "a", "1.0.0");
    later.generated_at = "2999-01-01T00:00:00Z".into();
    fs::write(&path, later.to_text()).expect("file");
    let said = from_file();
    assert!(said <= rfc3339(now()), "{said}");
    later.generated_at = "once upon a time".into();
    fs::write(&path, later.to_text()).expect("file");
    assert_eq!(
        (from_file(), entries(&ground)[0].created_at.clone()),
        (rfc3339(modified(&path)), rfc3339(modified(&path)))
    );
    assert!(load(&spaces, "data", "a", "1.0.0").is_some());
}

#[test]
fn a_whole_batch_is_validated_at_once_and_a_rebuild_remembers() {
    let (ground, _) = four();
    for entry in entries(&ground) {
        age(&ground.ai("lockfiles").join(&entry.path), 50);
    }
    edit_index(&ground, |value| {
        for line in value["lockfiles"].as_object_mut().expect("lines").values_mut() {
            line["last_validated"] = json!(rfc3339(now() - DAY * 50));
        }
    });
    let at = now();
    let spaces = ground.spaces();
    let keys = ["data/a@1.0.0", "top@1.0.0", "not/there@1.0.0"];
    spaces.locks().validated(Space::Project, keys, at).expect("validated");
    let check = || {
        for entry in entries(&ground) {
            let fresh = keys.contains(&entry.key.as_str());
            assert_eq!(entry.last_validated == rfc3339(at), fresh, "{entry:?}");
        }
    };
    check();
    settle(&ground);
    assert_eq!(read_by(&ground).1, 0);
    check();
    assert_eq!(spaces.locks().rebuild(Space::Project, &mut |_, _| {}).expect("rebuilt"), 5);
    check();
    fs::remove_file(index_path(&ground)).expect("index");
    check();
}

#[test]
fn where_nothing_can_be_written_everything_can_be_read() {
    let (ground, before) = four();
    fs::remove_file(index_path(&ground)).expect("index");
    fs::remove_file(ground.ai("lockfiles/.lock")).expect("lock");
    fs::create_dir_all(ground.ai("lockfiles/.index.json/x")).expect("folder");
    fs::create_dir_all(ground.ai("lockfiles/.lock/x")).expect("folder");
    let spaces = ground.spaces();
    let locks = spaces.locks();
    for _ in 0..2 {
        assert_eq!(keys(&entries(&ground)), keys(&before));
    }
    assert!(load(&spaces, "data", "a", "1.0.0").is_some() && locks.any());
    assert_eq!(locks.of(&id("a")).expect("of").len(), 2);
    assert_eq!(locks.prune(Space::Project, DAY, now() + DAY * 9, true).expect("dry run").len(), 5);
    for error in [
        locks.save(Space::Project, &lock("data", "z", "1.0.0"), Slot::Default).expect_err("save"),
        locks.validated(Space::Project, ["data/a@1.0.0"], now()).expect_err("validated"),
        locks.prune(Space::Project, DAY, now() + DAY * 9, false).expect_err("prune"),
    ] {
        assert!(error.to_string().contains("lockfiles/.lock"), "{error}");
    }
    // Only the index cannot be written: it is a cache, so saving works.
    fs::remove_dir_all(ground.ai("lockfiles/.lock")).expect("lock");
    created(&ground, "data", "z", "1.0.0");
    assert_eq!(entries(&ground).len(), 6);
}

#[test]
fn a_call_looks_at_its_file_and_at_nothing_else() {
    let ground = Ground::new();
    let spaces = ground.spaces();
    let mut writer = spaces.locks().writer(Space::Project).expect("writer");
    for number in 0..3000 {
        writer.save(&lock("many", &format!("t{number}"), "1.0.0"), Slot::Default).expect("saved");
    }
    writer.finish().expect("index");
    settle(&ground);
    assert_eq!(read_by(&ground).1, 0);
    assert_eq!(index(&ground)["lockfiles"].as_object().expect("lines").len(), 3000);
    // Whoever looked at the index would stumble, and mend it.
    let garbage = "garbage".repeat(100);
    fs::write(index_path(&ground), &garbage).expect("index");
    for number in [0, 1499, 2999] {
        let stored = load(&spaces, "many", &format!("t{number}"), "1.0.0").expect("stored");
        assert_eq!(stored.lock.root.version, version("1.0.0"));
    }
    assert_eq!(load(&spaces, "many", "t3000", "1.0.0"), None);
    assert_eq!(fs::read_to_string(index_path(&ground)).expect("index"), garbage);
    assert_eq!(read_by(&ground).1, 3000);
}
