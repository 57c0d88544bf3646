//! Saving and loading.

use kiwi_model::{ErrorKind, Explain as _, Space};
use kiwi_space::{SaveOutcome, Slot, SpaceError};
use serde_json::{Map, json};
use std::fs;
use std::os::unix::fs::symlink;

use crate::common::{Ground, id, version};
use crate::store::*;

#[test]
fn what_is_saved_is_found_under_its_name() {
    let ground = Ground::new();
    let spaces = ground.spaces();
    assert!(!spaces.locks().any());
    for (category, tool, number, file) in [
        ("", "a", "1.0.0", "a@1.0.0.lock.json"),
        ("data", "a", "1.0.0-beta.1", "data/a@1.0.0-beta.1.lock.json"),
        ("data/csv/deep", "a.b_c.d", "1.0.0+build.5", "data/csv/deep/a.b_c.d@1.0.0+build.5.lock.json"),
        ("mcp", "mcp.discover", "2.1.0-rc.1+b.7", "mcp/mcp.discover@2.1.0-rc.1+b.7.lock.json"),
    ] {
        assert_eq!(load(&spaces, category, tool, number), None);
        let lock = lock(category, tool, number);
        let saved = save(&spaces, &lock);
        assert_eq!(saved.outcome, SaveOutcome::Created);
        assert_eq!(saved.path, ground.ai("lockfiles").join(file));
        let stored = load(&spaces, category, tool, number).expect("stored");
        assert_eq!((&stored.lock, &stored.path, stored.scope), (&lock, &saved.path, Space::Project));
        assert_eq!(
            (stored.category.as_str(), &stored.name.tool_id, &stored.name.version),
            (category, &id(tool), &version(number))
        );
        assert_eq!(format!("{}.lock.json", stored.key()), file);
    }
    assert!(spaces.locks().any());
    let listed: Vec<_> = entries(&ground).into_iter().map(|entry| (entry.key, entry.name.version)).collect();
    assert_eq!(
        listed,
        [
            ("a@1.0.0".into(), version("1.0.0")),
            ("data/a@1.0.0-beta.1".into(), version("1.0.0-beta.1")),
            ("data/csv/deep/a.b_c.d@1.0.0+build.5".into(), version("1.0.0+build.5")),
            ("mcp/mcp.discover@2.1.0-rc.1+b.7".to_owned(), version("2.1.0-rc.1+b.7")),
        ]
    );
}

#[test]
fn alternatives_lie_beside_the_default_even_for_prereleases() {
    let ground = Ground::new();
    let spaces = ground.spaces();
    for number in ["1.0.0", "1.0.0-beta", "1.0.0+build"] {
        let (native, docker) =
            (lock_of("data", "a", number, "native"), lock_of("data", "a", number, "docker"));
        save(&spaces, &native);
        // The hash of a chain can be computed, so it need not be given.
        let given = kiwi_model::lockfile::Lockfile { chain_hash: String::new(), ..docker.clone() };
        let saved = spaces.locks().save(Space::Project, &given, Slot::Alternative).expect("alternative");
        let file = format!("lockfiles/data/a@{number}.{}.lock.json", docker.chain_hash);
        assert_eq!(saved.path, ground.ai(&file));
        let found = spaces
            .locks()
            .load_alternative("data", &id("a"), &version(number), &docker.chain_hash)
            .expect("load")
            .expect("stored");
        assert_eq!(found.lock, docker);
        assert_eq!(found.name.alternative.as_ref(), Some(&docker.chain_hash));
        assert_eq!(load(&spaces, "data", "a", number).expect("default").lock, native);
        let none = spaces.locks().load_alternative("data", &id("a"), &version(number), &native.chain_hash);
        assert_eq!(none.expect("load"), None);
    }
    // Told by the index, and told by the files alone.
    for _ in 0..2 {
        let listed = entries(&ground);
        assert_eq!(listed.len(), 6, "{:?}", keys(&listed));
        for entry in &listed {
            assert_eq!(entry.problem, None);
            let is_plain =
                ["1.0.0", "1.0.0-beta", "1.0.0+build"].contains(&entry.name.version.to_string().as_str());
            assert!(is_plain, "{:?}", entry.name);
        }
        assert_eq!(listed.iter().filter(|entry| entry.name.alternative.is_some()).count(), 3);
        fs::remove_file(index_path(&ground)).expect("index");
    }
    for bad in ["", "3f9c", "3F9C0A1B2C4D", "../../../etc", "3f9c0a1b2c4d00"] {
        let error = spaces.locks().load_alternative("data", &id("a"), &version("1.0.0"), bad).expect_err(bad);
        assert!(error.to_string().contains("is not a chain hash"), "{error}");
    }
}

#[test]
fn the_project_wins_over_the_user_and_the_system_has_none() {
    let ground = Ground::new();
    let spaces = ground.spaces();
    let locks = spaces.locks();
    let (mine, ours) = (lock_of("data", "a", "1.0.0", "mine"), lock_of("data", "a", "1.0.0", "ours"));
    let saved = locks.save(Space::User, &mine, Slot::Default).expect("user");
    assert_eq!(saved.path, ground.user_ai("lockfiles/data/a@1.0.0.lock.json"));
    assert!(locks.any());
    let found = load(&spaces, "data", "a", "1.0.0").expect("stored");
    assert_eq!((found.lock, found.scope), (mine, Space::User));
    save(&spaces, &ours);
    let found = load(&spaces, "data", "a", "1.0.0").expect("stored");
    assert_eq!((&found.lock, found.scope), (&ours, Space::Project));
    let both: Vec<_> =
        locks.of(&id("a")).expect("of").into_iter().map(|entry| (entry.scope, entry.key)).collect();
    assert_eq!(both, [(Space::Project, "data/a@1.0.0".into()), (Space::User, "data/a@1.0.0".to_owned())]);
    let mut writer = locks.writer(found.scope).expect("writer");
    writer.remove(&found.key()).expect("removed");
    writer.finish().expect("finished");
    assert_eq!(load(&spaces, "data", "a", "1.0.0").expect("stored").scope, Space::User);
    assert!(!ground.ai("lockfiles/data").exists() && entries(&ground).is_empty());
    for error in [
        locks.save(Space::System, &ours, Slot::Default).expect_err("system"),
        locks.entries(Space::System, None, &mut |_, _| {}).map(|_| ()).expect_err("system"),
        locks.prune(Space::System, DAY, now(), true).expect_err("system"),
    ] {
        assert!(matches!(error, SpaceError::NoSpace { space: Space::System }), "{error}");
    }
}

#[test]
fn saving_the_same_again_changes_no_byte_and_no_time() {
    let ground = Ground::new();
    let spaces = ground.spaces();
    let mut first = lock("data", "a", "1.0.0");
    let path = save(&spaces, &first).path;
    let (aged, bytes) = (age(&path, 3), fs::read(&path).expect("bytes"));
    let index = fs::read(index_path(&ground)).expect("index");
    first.generated_at = "2027-01-01T00:00:00Z".into();
    assert_eq!(save(&spaces, &first).outcome, SaveOutcome::Unchanged);
    assert_eq!((modified(&path), fs::read(&path).expect("bytes")), (aged, bytes));
    assert_eq!(fs::read(index_path(&ground)).expect("index"), index);
    let other = lock_of("data", "a", "1.0.0", "other");
    assert_eq!(save(&spaces, &other).outcome, SaveOutcome::Rewritten);
    assert_eq!(load(&spaces, "data", "a", "1.0.0").expect("stored").lock, other);
    assert!(modified(&path) > aged);
    assert_eq!(entries(&ground)[0].chain_hash, other.chain_hash);
    // Just frozen is just validated, whatever the index said a moment ago.
    for round in 0..20 {
        edit_index(&ground, |value| value["lockfiles"]["data/a@1.0.0"]["last_validated"] = json!(AT));
        let other = lock_of("data", "a", "1.0.0", &format!("round {round}"));
        assert_eq!(save(&spaces, &other).outcome, SaveOutcome::Rewritten);
        let entry = &entries(&ground)[0];
        assert_eq!(
            (&entry.chain_hash, &entry.last_validated),
            (&other.chain_hash, &rfc3339(modified(&path)))
        );
    }
}

#[test]
fn keys_of_a_stranger_outlive_a_rewrite() {
    let ground = Ground::new();
    let spaces = ground.spaces();
    let mut theirs = lock("data", "a", "1.0.0");
    theirs.environment = Some(kiwi_model::lockfile::LockEnvironment::default());
    let mut value = serde_json::to_value(&theirs).expect("json");
    value["zebra"] = json!([1, {"b": 2, "a": null}]);
    value["root"]["owner"] = json!("me");
    value["resolved_chain"][0]["note"] = json!("first");
    value["resolved_chain"][1]["note"] = json!("second");
    value["environment"]["ruby"] = json!("3.4");
    let path =
        ground.write("lockfiles/data/a@1.0.0.lock.json", serde_json::to_string_pretty(&value).expect("text"));
    let mut ours = lock_of("data", "a", "1.0.0", "other");
    ours.environment = theirs.environment.clone();
    ours.resolved_chain[1].rest = Map::from_iter([("note".to_owned(), json!("ours"))]);
    assert_eq!(save(&spaces, &ours).outcome, SaveOutcome::Rewritten);
    let written: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&path).expect("text")).expect("json");
    assert_eq!(written["zebra"], value["zebra"]);
    assert_eq!(written["root"]["owner"], "me");
    assert_eq!(written["resolved_chain"][0]["note"], "first");
    assert_eq!(written["resolved_chain"][1]["note"], "ours");
    assert_eq!(written["environment"]["ruby"], "3.4");
    assert_eq!(written["chain_hash"], ours.chain_hash);
    // Only what is unknown differs: nothing to write.
    let plain = lock_of("data", "a", "1.0.0", "other");
    let again = kiwi_model::lockfile::Lockfile { environment: ours.environment.clone(), ..plain };
    assert_eq!(save(&spaces, &again).outcome, SaveOutcome::Unchanged);
}

#[test]
fn hostile_categories_are_refused_everywhere() {
    let ground = Ground::new();
    let spaces = ground.spaces();
    let locks = spaces.locks();
    let deep = vec!["a"; 40].join("/");
    for bad in
        ["..", "../x", "a/../../x", "/etc", "a//b", "a/", "/", ".", ".hidden", "a/.b", "a\0b", "a\nb", &deep]
    {
        for error in [
            locks.load(bad, &id("a"), &version("1.0.0")).expect_err(bad),
            locks.save(Space::Project, &lock(bad, "a", "1.0.0"), Slot::Default).expect_err(bad),
            locks.entries(Space::Project, Some(bad), &mut |_, _| {}).map(|_| ()).expect_err(bad),
        ] {
            assert!(error.to_string().ends_with("is not a category"), "{error}");
            assert!(error.hint().is_some_and(|hint| hint.contains("data/csv")));
        }
    }
    let left: Vec<_> =
        fs::read_dir(ground.path()).expect("folder").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn a_name_too_long_for_a_file_has_no_lockfile() {
    let ground = Ground::new();
    let number = format!("1.0.0-{}", "a".repeat(300));
    assert_eq!(load(&ground.spaces(), "data", "a", &number), None);
}

#[test]
fn symlinks_that_lead_out_are_not_followed() {
    let ground = Ground::new();
    let spaces = ground.spaces();
    let outside = ground.path().join("outside");
    let text = lock("data", "a", "1.0.0").to_text();
    let target = crate::common::write(&outside.join("a@1.0.0.lock.json"), &text);
    fs::create_dir_all(ground.ai("lockfiles/data")).expect("folder");
    symlink(&target, ground.ai("lockfiles/data/a@1.0.0.lock.json")).expect("link");
    let error = spaces.locks().load("data", &id("a"), &version("1.0.0")).expect_err("outside");
    assert_eq!(error.kind(), ErrorKind::LockfileMismatch);
    assert!(error.to_string().ends_with("a@1.0.0.lock.json`: leaves its space"), "{error}");
    let listed = entries(&ground);
    assert!(listed[0].problem.as_ref().is_some_and(|fault| fault.message.contains("leaves its space")));
    // Saving replaces the link, not what it leads to.
    save(&spaces, &lock_of("data", "a", "1.0.0", "new"));
    assert_eq!(fs::read_to_string(&target).expect("target"), text);
    assert!(load(&spaces, "data", "a", "1.0.0").is_some());
    // A folder that leads out: not read, not listed, not written through.
    symlink(&outside, ground.ai("lockfiles/out")).expect("link");
    assert!(spaces.locks().load("out", &id("a"), &version("1.0.0")).is_err());
    assert_eq!(keys(&entries(&ground)), ["data/a@1.0.0"]);
    let error =
        spaces.locks().save(Space::Project, &lock("out", "b", "1.0.0"), Slot::Default).expect_err("outside");
    assert!(error.to_string().contains("symlink"), "{error}");
    assert_eq!(fs::read_dir(&outside).expect("outside").count(), 1);
    // The store itself.
    fs::rename(ground.ai("lockfiles"), ground.ai("moved")).expect("moved");
    symlink(&outside, ground.ai("lockfiles")).expect("link");
    assert!(spaces.locks().save(Space::Project, &lock("", "c", "1.0.0"), Slot::Default).is_err());
    assert!(spaces.locks().load("", &id("a"), &version("1.0.0")).is_err());
    assert_eq!(fs::read_dir(&outside).expect("outside").count(), 1);
}

#[test]
fn a_link_within_the_space_is_followed_and_its_target_kept() {
    let ground = Ground::new();
    let target = ground.write("shared/a.json", lock("data", "a", "1.0.0").to_text());
    fs::create_dir_all(ground.ai("lockfiles/data")).expect("folder");
    symlink(&target, ground.ai("lockfiles/data/a@1.0.0.lock.json")).expect("link");
    assert!(load(&ground.spaces(), "data", "a", "1.0.0").is_some());
    assert_eq!(entries(&ground)[0].problem, None);
    assert_eq!(keys(&entries(&ground)), ["data/a@1.0.0"]);
}

#[test]
fn git_is_told_what_not_to_keep_and_a_choice_of_others_stays() {
    let ground = Ground::new();
    created(&ground, "data", "a", "1.0.0");
    let ignore = ground.ai("lockfiles/.gitignore");
    assert_eq!(fs::read_to_string(&ignore).expect("ignore"), "/.index.json\n/.lock\n.new-*\n");
    fs::write(&ignore, "mine\n").expect("ignore");
    created(&ground, "data", "b", "1.0.0");
    assert_eq!(fs::read_to_string(&ignore).expect("ignore"), "mine\n");
}

#[test]
fn use_is_noted_once_a_day_and_never_an_error() {
    let ground = Ground::new();
    let spaces = ground.spaces();
    let path = created(&ground, "data", "a", "1.0.0");
    let fresh = modified(&path);
    let touch = || {
        let stored = load(&spaces, "data", "a", "1.0.0").expect("stored");
        spaces.locks().touch(&stored, now());
    };
    touch();
    assert_eq!(modified(&path), fresh);
    let aged = now() - DAY / 2;
    fs::File::options().write(true).open(&path).expect("file").set_modified(aged).expect("mtime");
    touch();
    assert_eq!(modified(&path), aged);
    age(&path, 2);
    let bytes = fs::read(&path).expect("bytes");
    touch();
    assert!(modified(&path) > fresh && fs::read(&path).expect("bytes") == bytes);
    age(&path, 2);
    let stored = load(&spaces, "data", "a", "1.0.0").expect("stored");
    fs::remove_file(&path).expect("removed");
    spaces.locks().touch(&stored, now());
    assert!(!path.exists());
}
