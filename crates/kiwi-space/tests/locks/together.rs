//! Several writers at once, and writers that die.

use kiwi_model::Space;
use kiwi_model::lockfile::Lockfile;
use kiwi_space::{Locations, SaveOutcome, Slot, Spaces};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Ground, write};
use crate::store::*;

const ROUNDS: usize = 12;

/// Saves, rewrites, validates, lists and prunes, all in one store with everybody else.
fn hammer(ground: &Path, who: &str) {
    for round in 0..ROUNDS {
        let locations =
            Locations { project: None, cwd: ground.join("project"), user: Some(ground.join("home")) };
        let spaces = Spaces::open(locations).expect("spaces");
        let locks = spaces.locks();
        let (own, tool) = (format!("own/{who}"), format!("{who}_{round}"));
        save(&spaces, &lock(&own, &tool, "1.0.0"));
        let key = format!("{own}/{tool}@1.0.0");
        locks.validated(Space::Project, [key.as_str()], now()).expect("validated");
        locks.save(Space::Project, &lock_of("shared", "s", "1.0.0", &tool), Slot::Default).expect("shared");
        assert!(load(&spaces, "shared", "s", "1.0.0").is_some(), "old or new, never none");
        let passing = pass(ground, who, &tool);
        locks.prune(Space::Project, DAY * 500, now(), false).expect("pruned");
        assert!(!passing.exists(), "whoever pruned, it is gone");
        let brief = lock("brief", &tool, "1.0.0");
        save(&spaces, &brief);
        let stored = load(&spaces, "brief", &tool, "1.0.0").expect("brief");
        let mut writer = locks.writer(stored.scope).expect("writer");
        writer.remove(&stored.key()).expect("removed");
        writer.finish().expect("finished");
        let listed = locks.entries(Space::Project, None, &mut |_, _| {}).expect("entries");
        let listed: Vec<_> = listed.collect();
        assert!(listed.iter().any(|entry| entry.key == key), "{key} was lost");
        assert!(listed.iter().all(|entry| entry.problem.is_none()), "{listed:?}");
    }
}

/// An old lockfile that came by other means, in a folder that others may be removing.
fn pass(ground: &Path, who: &str, tool: &str) -> PathBuf {
    let category = format!("passing/{who}");
    let old = Lockfile { generated_at: "2020-01-01T00:00:00Z".into(), ..lock(&category, tool, "1.0.0") };
    let beside = write(&ground.join(format!("{tool}.json")), old.to_text());
    age(&beside, 1000);
    let folder = ground.join("project/.ai/lockfiles").join(category);
    let path = folder.join(format!("{tool}@1.0.0.lock.json"));
    while fs::create_dir_all(&folder).and_then(|()| fs::rename(&beside, &path)).is_err() {}
    path
}

fn nothing_lost(ground: &Ground, who: &[String]) {
    let listed = entries(ground);
    let found: BTreeSet<&str> = keys(&listed).into_iter().collect();
    let mut expected: BTreeSet<String> = who
        .iter()
        .flat_map(|who| (0..ROUNDS).map(move |round| format!("own/{who}/{who}_{round}@1.0.0")))
        .collect();
    expected.insert("shared/s@1.0.0".into());
    assert_eq!(found, expected.iter().map(String::as_str).collect());
    let value = index(ground);
    assert_eq!(value["lockfiles"].as_object().expect("lines").len(), expected.len());
    let left: BTreeSet<_> = fs::read_dir(ground.ai("lockfiles"))
        .expect("store")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(left, [".gitignore", ".index.json", ".lock", "own", "shared"].map(String::from).into());
}

#[test]
fn many_threads_lose_nothing() {
    let ground = Ground::new();
    let who: Vec<String> = (0..8).map(|number| format!("t{number}")).collect();
    std::thread::scope(|scope| {
        for who in &who {
            scope.spawn(|| hammer(&ground.path(), who));
        }
    });
    nothing_lost(&ground, &who);
}

#[test]
fn several_processes_lose_nothing() {
    let ground = Ground::new();
    let who: Vec<String> = (0..4).map(|number| format!("process_{number}")).collect();
    let start = |who: &String| {
        let folder = ground.path().join(who);
        fs::create_dir(&folder).expect("folder");
        #[expect(clippy::disallowed_methods, reason = "a second process is the point of this test")]
        let mut command = std::process::Command::new(std::env::current_exe().expect("this test"));
        command
            .current_dir(&folder)
            .args(["--exact", "together::one_of_several_processes"])
            .stdout(std::process::Stdio::null());
        command.spawn().expect("process")
    };
    for mut child in who.iter().map(start).collect::<Vec<_>>() {
        assert!(child.wait().expect("process").success());
    }
    nothing_lost(&ground, &who);
}

/// Run by the test above, in a folder of its own beside the project. Anywhere else there is nothing to do.
#[test]
fn one_of_several_processes() {
    let here = std::env::current_dir().expect("folder");
    let name = here.file_name().expect("name").to_string_lossy().into_owned();
    if name.starts_with("process_") {
        hammer(here.parent().expect("ground"), &name);
    }
}

#[test]
fn what_a_killed_writer_left_goes_with_the_next_one() {
    let ground = Ground::new();
    created(&ground, "data", "a", "1.0.0");
    let process = std::process::id();
    let left = [
        ground.write("lockfiles/.new-1234-0", "half"),
        ground.write(&format!("lockfiles/data/.new-{process}-0"), "half"),
        ground.write("lockfiles/else/.new-abcdef", "half"),
    ];
    assert_eq!(keys(&entries(&ground)), ["data/a@1.0.0"]);
    created(&ground, "data", "b", "1.0.0");
    assert!(left.iter().all(|path| !path.exists()));
    assert_eq!(entries(&ground).len(), 2);
}

#[test]
fn a_lock_that_was_cleaned_away_keeps_writers_apart_again() {
    let ground = Ground::new();
    created(&ground, "data", "a", "1.0.0");
    let spaces = ground.spaces();
    let writer = spaces.locks().writer(Space::Project).expect("writer");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| created(&ground, "data", "b", "1.0.0"));
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!waiting.is_finished(), "one writer at a time");
        fs::remove_file(ground.ai("lockfiles/.lock")).expect("lock");
        drop(writer);
        waiting.join().expect("saved");
    });
    assert!(ground.ai("lockfiles/.lock").exists());
    assert_eq!(keys(&entries(&ground)), ["data/a@1.0.0", "data/b@1.0.0"]);
}

#[test]
fn a_batch_is_whole_however_it_ends() {
    let ground = Ground::new();
    let spaces = ground.spaces();
    created(&ground, "data", "before", "1.0.0");
    let mut writer = spaces.locks().writer(Space::Project).expect("writer");
    for tool in ["a", "b"] {
        let saved = writer.save(&lock("data", tool, "1.0.0"), Slot::Default).expect("saved");
        assert_eq!(saved.outcome, SaveOutcome::Created);
    }
    writer.save(&lock_of("data", "before", "1.0.0", "after"), Slot::Default).expect("saved");
    // While it writes others read: all of it, without waiting and without touching the index.
    assert_eq!(index(&ground)["lockfiles"].as_object().expect("lines").len(), 1);
    assert_eq!(entries(&ground).len(), 3);
    assert_eq!(index(&ground)["lockfiles"].as_object().expect("lines").len(), 1);
    // Killed: no index is written, and the next listing knows better.
    std::mem::forget(writer);
    let (listed, _) = read_by(&ground);
    assert_eq!(keys(&listed), ["data/a@1.0.0", "data/b@1.0.0", "data/before@1.0.0"]);
}

#[test]
fn a_dropped_batch_writes_its_index() {
    let ground = Ground::new();
    let spaces = ground.spaces();
    {
        let mut writer = spaces.locks().writer(Space::User).expect("writer");
        writer.save(&lock("data", "a", "1.0.0"), Slot::Default).expect("saved");
    }
    let text = fs::read_to_string(ground.user_ai("lockfiles/.index.json")).expect("index");
    assert!(text.contains("\"scope\":\"user\""), "{text}");
    let writer = spaces.locks().writer(Space::User).expect("writer");
    writer.finish().expect("nothing to write");
    assert_eq!(fs::read_to_string(ground.user_ai("lockfiles/.index.json")).expect("index"), text);
}
