//! Lookups must see every change at once, however the index was left behind.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]

mod common;

use common::{Ground, as_somebody, candidates, find, id, manifest};
use kiwi_chain::Catalog as _;
use kiwi_model::{Explain as _, Space, ToolRef};
use kiwi_space::{Locations, Spaces};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

fn is_there(spaces: &Spaces, name: &str) -> bool {
    !find(spaces, name, Space::Project).unwrap_or_else(|fault| panic!("{name}: {fault}")).is_empty()
}

/// Long enough for every folder to be trusted again.
fn settle() {
    std::thread::sleep(Duration::from_millis(40));
}

#[test]
fn every_change_is_seen_at_once_by_a_process_that_watches() {
    let ground = Ground::new();
    for number in 0..30 {
        ground.write(&format!("tools/w{number}/stay_{number}.sh"), "echo\n");
    }
    let warm = ground.spaces();
    let ask = |name: &str, expect: bool, what: &str| assert_eq!(is_there(&warm, name), expect, "{what}");
    for round in 0..60 {
        // Long enough asked without a change to be watching.
        settle();
        (0..70).for_each(|_| ask("stay_7", true, "quiet"));
        let category = format!("tools/w{}", round % 30);
        ground.write(&format!("{category}/one.sh"), "echo\n");
        ask("one", true, "created");
        fs::rename(ground.ai(&format!("{category}/one.sh")), ground.ai("tools/w0/two.sh")).expect("rename");
        ask("one", false, "renamed away");
        ask("two", true, "renamed to");
        fs::remove_file(ground.ai("tools/w0/two.sh")).expect("remove");
        ask("two", false, "removed");
        match round % 6 {
            0 => {
                ground.write("tools/fresh/deep/er.sh", "echo\n");
                ask("er", true, "in a new folder");
                fs::remove_dir_all(ground.ai("tools/fresh")).expect("remove");
                ask("er", false, "gone with its folder");
            }
            1 => {
                fs::rename(ground.ai("tools"), ground.ai("aside")).expect("rename");
                ask("stay_7", false, "all of tools is elsewhere");
                fs::rename(ground.ai("aside"), ground.ai("tools")).expect("rename");
                ask("stay_7", true, "and back");
            }
            2 => {
                fs::rename(ground.project().join(".ai"), ground.project().join("was")).expect("rename");
                ground.write("tools/other.sh", "echo\n");
                ask("other", true, "another .ai in its place");
                ask("stay_7", false, "the old one is elsewhere");
                fs::remove_dir_all(ground.project().join(".ai")).expect("remove");
                fs::rename(ground.project().join("was"), ground.project().join(".ai")).expect("rename");
                ask("stay_7", true, "and back");
            }
            3 => {
                ground.write("scripts/late.sh", "echo\n");
                ask("late", true, "a folder that was not there");
                fs::remove_dir_all(ground.ai("scripts")).expect("remove");
                ask("late", false, "and is gone again");
            }
            _ => {}
        }
    }
}

#[test]
fn every_change_is_seen_at_once() {
    let ground = Ground::new();
    ground.write("tools/keep/stay.sh", "echo\n");
    let warm = ground.spaces();
    for round in 0..500 {
        // A process that was there all the time, and one that has just started and finds the index file.
        let cold = ground.spaces();
        let both = |name: &str, expect: bool, what: &str| {
            for spaces in [&warm, &cold] {
                assert_eq!(is_there(spaces, name), expect, "round {round}: {what}");
            }
        };
        let category = format!("tools/c{}", round % 3);
        ground.write(&format!("{category}/one.sh"), "echo\n");
        both("one", true, "created");
        fs::rename(ground.ai(&format!("{category}/one.sh")), ground.ai(&format!("{category}/two.sh")))
            .expect("rename");
        both("one", false, "renamed away");
        both("two", true, "renamed to");
        fs::remove_file(ground.ai(&format!("{category}/two.sh"))).expect("remove");
        both("two", false, "removed");
        if round % 5 == 0 {
            fs::create_dir_all(ground.ai("tools/grow/pack")).expect("folder");
            both("pack", false, "an empty folder is a category");
            ground.write("tools/grow/pack/tool.yaml", manifest("pack", "1.0.0"));
            both("pack", true, "the folder became a tool");
            ground.write("tools/grow/pack/inner.sh", "echo\n");
            both("inner", false, "a file of a tool is no tool");
            fs::remove_file(ground.ai("tools/grow/pack/tool.yaml")).expect("remove");
            both("pack", false, "the folder is a category again");
            both("inner", true, "and its files are tools");
            fs::remove_dir_all(ground.ai("tools/grow")).expect("remove");
            both("inner", false, "everything gone");
        }
        both("stay", true, "untouched");
    }
}

#[test]
fn a_folder_that_stops_being_a_tool_is_seen_by_listings() {
    let ground = Ground::new();
    ground.write("tools/pack/tool.yaml", manifest("pack", "1.0.0"));
    ground.write("tools/pack/inner.sh", "echo\n");
    let spaces = ground.spaces();
    settle();
    assert!(is_there(&spaces, "pack") && !is_there(&spaces, "inner"));
    fs::remove_file(ground.ai("tools/pack/tool.yaml")).expect("remove");
    assert!(spaces.ids().contains(&id("inner")));
    assert!(is_there(&spaces, "inner") && !is_there(&spaces, "pack"));
}

#[test]
fn settled_folders_are_not_read_again() {
    let ground = Ground::new();
    for category in ["a", "b", "c/d"] {
        ground.write(&format!("tools/{category}/x{}.sh", category.len()), "echo\n");
    }
    settle();
    assert!(is_there(&ground.spaces(), "x3"));
    assert!(ground.ai("cache/tools.index").is_file());
    assert_eq!(fs::read_to_string(ground.ai("cache/.gitignore")).expect("ignored"), "*\n");
    let spaces = ground.spaces();
    for _ in 0..10 {
        assert!(is_there(&spaces, "x3") && !is_there(&spaces, "nope"));
    }
    let counters = spaces.counters();
    assert_eq!(
        (counters["index_folders_read"], counters["index_misses"], counters["index_hits"]),
        (0, 0, 20),
        "{counters:?}"
    );
    // One change, one folder.
    ground.write("tools/a/new.sh", "echo\n");
    settle();
    assert!(is_there(&spaces, "new"));
    assert_eq!(spaces.counters()["index_folders_read"], 1);
    // Editing a tool touches no folder.
    fs::write(ground.ai("tools/a/new.sh"), "echo 2\n").expect("write");
    assert!(is_there(&spaces, "new"));
    assert_eq!(spaces.counters()["index_folders_read"], 1);
}

#[test]
fn a_corrupt_or_foreign_index_is_built_again() {
    let ground = Ground::new();
    for i in 0..300 {
        ground.write(&format!("tools/c{}/tool_number_{i}.sh", i % 4), "echo\n");
    }
    settle();
    assert!(is_there(&ground.spaces(), "tool_number_7"));
    let file = ground.ai("cache/tools.index");
    let good = fs::read(&file).expect("index");
    let check = |bytes: &[u8], what: &str| {
        fs::write(&file, bytes).expect("write");
        let spaces = ground.spaces();
        for i in [0, 7, 150, 299] {
            assert!(is_there(&spaces, &format!("tool_number_{i}")), "{what}: {i}");
        }
        assert!(!is_there(&spaces, "tool_number_300"), "{what}");
    };
    check(b"", "empty");
    check(b"not an index at all, but long enough to be taken for one if nobody looks", "foreign");
    for cut in [1, 8, 20, 27, 28, 100, good.len() / 2, good.len() - 1] {
        check(&good[..cut], "cut");
    }
    check(&[good.as_slice(), b"x"].concat(), "longer");
    for at in (0..good.len()).step_by(good.len() / 97) {
        let mut bad = good.clone();
        bad[at] ^= 0x41;
        check(&bad, &format!("byte {at}"));
    }
    fs::remove_file(&file).expect("remove");
    fs::create_dir(&file).expect("a folder in its place");
    assert!(is_there(&ground.spaces(), "tool_number_7"));
    // An index that came with another copy of the folder says nothing about this one.
    let other = Ground::new();
    other.write("tools/c0/tool_number_7.sh", "echo\n");
    other.write("cache/tools.index", &good);
    let spaces = other.spaces();
    assert!(is_there(&spaces, "tool_number_7") && !is_there(&spaces, "tool_number_8"));
}

#[test]
fn a_cache_that_points_elsewhere_is_not_written() {
    let ground = Ground::new();
    let elsewhere = ground.path().join("elsewhere");
    fs::create_dir(&elsewhere).expect("folder");
    std::os::unix::fs::symlink(&elsewhere, ground.ai("cache")).expect("link");
    ground.write("tools/a.sh", "echo\n");
    assert!(is_there(&ground.spaces(), "a"));
    assert_eq!(fs::read_dir(&elsewhere).expect("folder").count(), 0);
}

#[test]
fn a_space_that_cannot_be_written_is_read_all_the_same() {
    let ground = Ground::new();
    ground.write("tools/a/x.sh", "echo\n");
    let mode = |mode| fs::set_permissions(ground.ai(""), fs::Permissions::from_mode(mode)).expect("mode");
    mode(0o555);
    let spaces = ground.spaces();
    let found = is_there(&spaces, "x") && !is_there(&spaces, "y") && spaces.list(Space::Project).len() == 1;
    mode(0o755);
    assert!(found);
}

#[test]
fn a_folder_that_cannot_be_read_holds_up_nobody_else() {
    let ground = Ground::new();
    ground.write("tools/good/x.sh", "echo\n");
    ground.write("tools/locked/y.sh", "echo\n");
    let mode = |mode| {
        let locked = ground.ai("tools/locked");
        fs::set_permissions(locked, fs::Permissions::from_mode(mode)).expect("mode");
    };
    mode(0o000);
    let spaces = ground.spaces();
    let found = is_there(&spaces, "x");
    let listed: Vec<bool> = spaces.list(Space::Project).iter().map(|listed| listed.result.is_ok()).collect();
    let (asked, hidden) =
        (candidates(&spaces, "locked", Space::Project), candidates(&spaces, "y", Space::Project));
    mode(0o755);
    assert!(found);
    if rustix::process::geteuid().is_root() {
        assert_eq!(hidden.expect("root reads everything").len(), 1);
    } else {
        assert!(asked.is_err_and(|fault| fault.message.contains("permission denied")));
        assert_eq!(listed, [false, true]);
    }
    assert!(is_there(&spaces, "y"));
}

#[test]
fn what_a_closed_folder_may_hold_is_not_answered_by_another_space() {
    for closed in [0o000, 0o444] {
        let ground = Ground::new();
        ground.write("tools/good/x.sh", "# kiwi: version: \"1.0.0\"\n");
        ground.write("tools/locked/in/a.sh", "# kiwi: version: \"1.0.0\"\n");
        ground.write_user("tools/a.sh", "# kiwi: version: \"2.0.0\"\n");
        let mode = |mode| {
            let locked = ground.ai("tools/locked");
            fs::set_permissions(locked, fs::Permissions::from_mode(mode)).expect("mode");
        };
        let ask = |name: &str| ToolRef::from(id(name));
        mode(closed);
        as_somebody(&ground, || {
            let spaces = ground.spaces();
            for _ in 0..2 {
                for name in ["a", "nowhere"] {
                    let fault = kiwi_chain::find(&spaces, &ask(name)).expect_err(name).fault();
                    let told =
                        fault.message.starts_with("cannot read `") && fault.message.contains("tools/locked");
                    assert!(told && fault.kind.exit_code() == 2, "{fault}");
                }
                // What the project has goes on, and so does what the system brings along.
                let goes_on = |name| kiwi_chain::find(&spaces, &ask(name)).expect(name).space;
                assert_eq!((goes_on("x"), goes_on("bash_runtime")), (Space::Project, Space::System));
            }
            let listed = spaces.list(Space::Project);
            let broken: Vec<_> = listed.iter().filter(|listed| listed.result.is_err()).collect();
            assert!(broken.iter().any(|listed| listed.path.contains("tools/locked")), "{listed:?}");
        });
        mode(0o755);
        let spaces = ground.spaces();
        assert_eq!(kiwi_chain::find(&spaces, &ask("a")).expect("found").space, Space::Project);
    }
}

/// `count` tools in categories of a thousand.
fn many(ground: &Ground, count: usize) {
    for i in 0..count {
        if i % 1000 == 0 {
            fs::create_dir_all(ground.ai(&format!("tools/c{}", i / 1000))).expect("folder");
        }
        fs::write(ground.ai(&format!("tools/c{}/tool_{i}.sh", i / 1000)), "# kiwi: version: \"1.0.0\"\n")
            .expect("file");
    }
    settle();
}

#[test]
fn ten_thousand_tools_do_not_slow_a_lookup() {
    let (few, lots) = (Ground::new(), Ground::new());
    many(&few, 10);
    many(&lots, 10_000);
    for ground in [&few, &lots] {
        assert!(is_there(&ground.spaces(), "tool_5"));
    }
    // Cold: what a new process pays. Best of many, so that a busy machine does not decide.
    let best = |ground: &Ground| {
        let once = |_| {
            let spaces = ground.spaces();
            let start = Instant::now();
            assert_eq!(candidates(&spaces, "tool_7", Space::Project).expect("found").len(), 1);
            (start.elapsed(), spaces.counters()["index_folders_read"])
        };
        let rounds: Vec<(Duration, u64)> = (0..50).map(once).collect();
        assert!(rounds.iter().all(|(_, read)| *read == 0));
        rounds.into_iter().map(|(time, _)| time).min().expect("rounds")
    };
    let (few, lots) = (best(&few), best(&lots));
    assert!(lots < few * 4 + Duration::from_micros(300), "{few:?} with 10 tools, {lots:?} with 10,000");
}

#[test]
fn every_one_of_many_is_found_and_listed() {
    let ground = Ground::new();
    many(&ground, 3000);
    drop(ground.spaces().list(Space::Project));
    let spaces = ground.spaces();
    for i in (0..3000).step_by(7) {
        assert!(is_there(&spaces, &format!("tool_{i}")), "{i}");
    }
    assert_eq!(spaces.counters()["index_folders_read"], 0);
    assert_eq!(spaces.list(Space::Project).len(), 3000);
}

/// Adds and removes tools, and looks each up, for a while.
fn hammer(project: &Path, user: &Path, name: &str, rounds: usize) {
    let spaces = Spaces::open(Locations {
        project: Some(project.into()),
        cwd: project.into(),
        user: Some(user.into()),
    })
    .expect("spaces");
    let path = project.join(format!(".ai/tools/shared/{name}.sh"));
    for round in 0..rounds {
        fs::write(&path, "echo\n").expect("write");
        assert!(is_there(&spaces, name), "{name} round {round}");
        assert!(is_there(&spaces, "stay"));
        fs::remove_file(&path).expect("remove");
        assert!(!is_there(&spaces, name), "{name} round {round}");
    }
}

#[test]
fn many_threads_use_one_index() {
    let ground = Ground::new();
    ground.write("tools/shared/stay.sh", "echo\n");
    let spaces = ground.spaces();
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let (spaces, ground) = (&spaces, &ground);
            scope.spawn(move || hammer(&ground.project(), &ground.user(), &format!("t{thread}"), 60));
            scope.spawn(move || (0..200).for_each(|_| assert!(is_there(spaces, "stay"))));
        }
    });
    let left: Vec<_> =
        fs::read_dir(ground.ai("cache")).expect("cache").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left.len(), 2, "nothing temporary is left: {left:?}");
}

#[test]
fn several_processes_use_one_index() {
    let ground = Ground::new();
    ground.write("tools/shared/stay.sh", "echo\n");
    let start = |number: usize| {
        let folder = ground.path().join(format!("process_{number}"));
        fs::create_dir(&folder).expect("folder");
        #[expect(clippy::disallowed_methods, reason = "a second process is the point of this test")]
        let mut command = std::process::Command::new(std::env::current_exe().expect("this test"));
        command
            .current_dir(&folder)
            .args(["--exact", "one_of_several_processes"])
            .stdout(std::process::Stdio::null());
        command.spawn().expect("process")
    };
    let children: Vec<_> = (0..3).map(start).collect();
    hammer(&ground.project(), &ground.user(), "parent", 60);
    for mut child in children {
        assert!(child.wait().expect("process").success());
    }
}

/// Run by the test above, in a folder of its own beside the project. Anywhere else there is nothing to do.
#[test]
fn one_of_several_processes() {
    let here = std::env::current_dir().expect("folder");
    let name = here.file_name().expect("name").to_string_lossy().into_owned();
    if name.starts_with("process_") {
        let ground = here.parent().expect("ground");
        hammer(&ground.join("project"), &ground.join("home"), &name, 60);
    }
}
