//! Which change shows in which stamp.

use super::common::{Ground, set_executable, write};
use super::{note, project, settle, stamps};
use kiwi_model::Space;
use kiwi_space::{Locations, Spaces};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

type Stamps = BTreeMap<String, u64>;

/// The keys whose stamps differ, or that only one of them has.
fn differences(a: &Stamps, b: &Stamps) -> BTreeSet<String> {
    let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    keys.into_iter().filter(|key| a.get(*key) != b.get(*key)).cloned().collect()
}

#[test]
fn a_change_shows_in_the_stamp_of_its_item_and_in_no_other() {
    let ground = project();
    let warm = ground.spaces();
    let mut before = stamps(&warm);
    let keys: Vec<&str> = before.keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "directives/code/review/SKILL.md",
            "directives/ops/deploy.md",
            "knowledge/art/colours.md",
            "packages/packed/1.0.0",
            "tools/data/one.sh",
            "tools/data/pack",
            "tools/data/two.sh",
            "tools/top.sh",
        ]
    );
    let mut check = |what: &str, expected: &[&str], change: &dyn Fn(&Ground)| {
        change(&ground);
        settle();
        let now = stamps(&warm);
        let changed = differences(&before, &now);
        assert_eq!(changed, expected.iter().map(|key| (*key).to_owned()).collect(), "{what}");
        assert_eq!(stamps(&ground.spaces()), now, "{what}: for whoever looks");
        before = now;
    };
    check("nothing", &[], &|_| {});
    check("in place, the same size", &["tools/data/one.sh"], &|ground| {
        fs::write(ground.ai("tools/data/one.sh"), "# kiwi: version: \"2.0.0\"\necho\n").expect("write");
    });
    check("replaced", &["tools/data/two.sh"], &|ground| {
        let file = ground.write("tools/data/.new", "# kiwi: version: \"1.0.0\"\necho\n");
        fs::rename(file, ground.ai("tools/data/two.sh")).expect("rename");
    });
    check("replaced by one of the same times", &["tools/data/two.sh"], &|ground| {
        let old = fs::metadata(ground.ai("tools/data/two.sh")).expect("file").modified().expect("time");
        let file = ground.write("tools/data/.new", "# kiwi: version: \"3.0.0\"\necho\n");
        fs::File::options().write(true).open(&file).expect("file").set_modified(old).expect("time");
        fs::rename(file, ground.ai("tools/data/two.sh")).expect("rename");
    });
    check("touched", &["tools/top.sh"], &|ground| {
        let file = fs::File::options().write(true).open(ground.ai("tools/top.sh")).expect("file");
        file.set_modified(UNIX_EPOCH + Duration::from_secs(100)).expect("time");
    });
    check("made executable", &["tools/top.sh"], &|ground| set_executable(&ground.ai("tools/top.sh"), true));
    check("added", &["tools/data/three.sh"], &|ground| {
        ground.write("tools/data/three.sh", "echo\n");
    });
    check("removed", &["tools/data/three.sh"], &|ground| {
        fs::remove_file(ground.ai("tools/data/three.sh")).expect("remove");
    });
    check("a new category", &["tools/new/deep/four.py"], &|ground| {
        ground.write("tools/new/deep/four.py", "x = 1\n");
    });
    check("a category moved", &["tools/new/deep/four.py", "tools/moved/deep/four.py"], &|ground| {
        fs::rename(ground.ai("tools/new"), ground.ai("tools/moved")).expect("rename");
    });
    check("a nested file of a tool", &["tools/data/pack"], &|ground| {
        fs::write(ground.ai("tools/data/pack/deep/er/table.csv"), "c,d\n").expect("write");
    });
    check("another nested file", &["tools/data/pack"], &|ground| {
        ground.write("tools/data/pack/deep/er/more.csv", "c,d\n");
    });
    check("a nested file renamed", &["tools/data/pack"], &|ground| {
        let folder = ground.ai("tools/data/pack/deep/er");
        fs::rename(folder.join("more.csv"), folder.join("most.csv")).expect("rename");
    });
    check("the record of a package", &["packages/packed/1.0.0"], &|ground| {
        let record = ground.ai("packages/.records/packed@1.0.0.json");
        let text = fs::read_to_string(&record).expect("record");
        fs::write(record, text.replace("registry.example", "register.example")).expect("write");
    });
    check("the note of a package", &["packages/packed/1.0.0"], &|ground| {
        fs::remove_file(note(ground)).expect("remove");
    });
    check("a file of a package", &["packages/packed/1.0.0"], &|ground| {
        fs::write(ground.ai("packages/packed/1.0.0/main.sh"), "echo 1").expect("write");
    });
    check("texts", &["knowledge/art/colours.md", "directives/code/review/SKILL.md"], &|ground| {
        fs::write(ground.ai("knowledge/art/colours.md"), "# Colours\nRed is cold.\n").expect("write");
        fs::write(ground.ai("directives/code/review/SKILL.md"), super::SKILL).expect("write");
    });
    check("what is no item", &[], &|ground| {
        ground.write("tools/data/README", "hello\n");
        ground.write("tools/data/_hidden.sh", "echo\n");
        ground.write("tools/lib/shared.py", "x = 1\n");
        ground.write("knowledge/art/picture.png", "png");
        ground.write("knowledge/.draft.md", "later");
        ground.write("config/kiwi.toml", "");
    });
    check("a tool that lost its manifest", &["tools/data/pack", "tools/data/pack/main.sh"], &|ground| {
        fs::remove_file(ground.ai("tools/data/pack/tool.yaml")).expect("remove");
    });
}

#[test]
fn two_changes_within_a_tick_are_both_noticed() {
    let ground = project();
    let spaces = ground.spaces();
    let edits = [
        (ground.ai("tools/data/one.sh"), "tools/data/one.sh"),
        (ground.ai("tools/data/pack/deep/er/table.csv"), "tools/data/pack"),
        (ground.ai("packages/.records/packed@1.0.0.json"), "packages/packed/1.0.0"),
        (ground.ai("knowledge/art/colours.md"), "knowledge/art/colours.md"),
    ];
    let mut met = BTreeSet::new();
    for round in 0..100 {
        for (file, key) in &edits {
            fs::write(file, format!("{round:04}")).expect("write");
            assert!(met.insert(stamps(&spaces)[*key]), "{key}, round {round}");
        }
    }
    settle();
    let last = stamps(&spaces);
    for (_, key) in &edits {
        assert!(met.insert(last[*key]), "{key}: settled");
    }
    settle();
    assert_eq!(stamps(&spaces), last);
}

#[test]
fn only_the_folders_that_are_named_are_looked_at() {
    let ground = project();
    let spaces = ground.spaces();
    let all = spaces.sightings(Space::Project).expect("sightings");
    let folders: BTreeSet<String> = all.iter().map(|sighting| sighting.folder().to_owned()).collect();
    let expected =
        ["directives/code/review", "directives/ops", "knowledge/art", "packages", "tools", "tools/data"];
    assert_eq!(folders, expected.map(str::to_owned).into());
    let mut found = 0;
    for folder in &folders {
        let some = spaces.sightings_in(Space::Project, &BTreeSet::from([folder.clone()])).expect("some");
        assert!(some.iter().all(|sighting| sighting.folder() == folder && all.contains(sighting)));
        assert!(!some.is_empty());
        found += some.len();
    }
    assert_eq!(found, all.len());
    assert!(
        spaces.sightings_in(Space::Project, &BTreeSet::from(["nope".to_owned()])).expect("none").is_empty()
    );
}

#[test]
fn a_quiet_space_is_not_read_again_and_nothing_is_written() {
    let ground = project();
    let first = stamps(&ground.spaces());
    let written = fs::metadata(ground.ai("cache/tools.index")).expect("index").modified().expect("time");
    settle();
    let spaces = ground.spaces();
    for _ in 0..3 {
        assert_eq!(stamps(&spaces), first);
    }
    assert_eq!((spaces.counters()["index_folders_read"], spaces.counters()["index_rebuilds"]), (0, 0));
    let now = fs::metadata(ground.ai("cache/tools.index")).expect("index").modified().expect("time");
    assert_eq!(written, now);
}

#[test]
fn a_corrupt_index_is_built_again() {
    let ground = project();
    let whole = stamps(&ground.spaces());
    let file = ground.ai("cache/tools.index");
    let good = fs::read(&file).expect("index");
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x41;
        fs::write(&file, &bad).expect("write");
        assert_eq!(stamps(&ground.spaces()), whole, "byte {at}");
    }
}

#[test]
fn another_process_sees_the_same_stamps() {
    let ground = project();
    let folder = ground.path().join("stamps_of_another");
    fs::create_dir(&folder).expect("folder");
    #[expect(clippy::disallowed_methods, reason = "another process is the point of this test")]
    let mut command = std::process::Command::new(std::env::current_exe().expect("this test"));
    let status = command
        .current_dir(&folder)
        .args(["--exact", "stamps::another_process"])
        .stdout(std::process::Stdio::null())
        .status();
    assert!(status.expect("process").success());
    let there = fs::read_to_string(folder.join("stamps")).expect("stamps");
    assert_eq!(there, format!("{:?}", stamps(&ground.spaces())));
}

/// Run by the test above, in a folder of its own beside the project. Anywhere else there is nothing to do.
#[test]
fn another_process() {
    let here = std::env::current_dir().expect("folder");
    if here.ends_with("stamps_of_another") {
        let ground: &Path = here.parent().expect("ground");
        let locations =
            Locations { project: None, cwd: ground.join("project"), user: Some(ground.join("home")) };
        let spaces = Spaces::open(locations).expect("spaces");
        write(&here.join("stamps"), format!("{:?}", stamps(&spaces)));
    }
}

#[test]
fn spaces_without_folders_have_nothing() {
    let ground = Ground::new();
    fs::remove_dir_all(ground.user_ai("")).expect("remove");
    let spaces = ground.spaces();
    assert!(spaces.sightings(Space::User).expect("none").is_empty());
    assert!(spaces.sightings(Space::Project).expect("none").is_empty());
    assert!(spaces.watch(Space::User).expect("none").is_none());
    assert!(spaces.watch(Space::System).expect("none").is_none());
}
