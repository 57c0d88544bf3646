//! A watcher tells of each change soon, of the right folders, and of nothing else.

use super::common::{Ground, manifest, set_executable};
use super::{note, project, settle, stamps};
use kiwi_model::Space;
use kiwi_space::{Stirred, Watcher};
use std::fs;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(120);

fn watcher(ground: &Ground) -> Watcher {
    let watcher = ground.spaces().watch(Space::Project).unwrap_or_else(|error| panic!("{error}"));
    watcher.expect("this machine can watch")
}

fn folders(names: &[&str]) -> Stirred {
    Stirred::Folders(names.iter().map(|name| (*name).to_owned()).collect())
}

/// Waits for what a change stirs; the wait must be short, and everything told at once.
#[track_caller]
fn told(watcher: &mut Watcher, what: &str) -> Stirred {
    let begun = Instant::now();
    let stirred = watcher.wait(LONG);
    assert!(begun.elapsed() < Duration::from_millis(500), "{what}: {:?}", begun.elapsed());
    stirred
}

#[test]
fn each_change_is_told_once_and_of_the_right_folder() {
    let ground = project();
    let mut watcher = watcher(&ground);
    let mut check = |what: &str, expected: &Stirred, change: &dyn Fn(&Ground)| {
        change(&ground);
        assert_eq!(told(&mut watcher, what), *expected, "{what}");
        assert_eq!(watcher.wait(SHORT), Stirred::Nothing, "{what}: once");
    };
    let data = folders(&["tools/data"]);
    check("edited", &data, &|ground| {
        fs::write(ground.ai("tools/data/one.sh"), "echo 2\n").expect("write");
    });
    check("replaced", &data, &|ground| {
        let file = ground.write("tools/data/.new", "echo 3\n");
        fs::rename(file, ground.ai("tools/data/one.sh")).expect("rename");
    });
    check("added", &data, &|ground| {
        ground.write("tools/data/added.sh", "echo\n");
    });
    check("removed", &data, &|ground| fs::remove_file(ground.ai("tools/data/added.sh")).expect("remove"));
    check("touched", &data, &|ground| {
        let file = fs::File::options().write(true).open(ground.ai("tools/data/one.sh")).expect("file");
        file.set_modified(std::time::UNIX_EPOCH + LONG).expect("time");
    });
    check("made executable", &folders(&["tools"]), &|ground| {
        set_executable(&ground.ai("tools/top.sh"), true);
    });
    check("a nested file of a tool", &data, &|ground| {
        fs::write(ground.ai("tools/data/pack/deep/er/table.csv"), "x\n").expect("write");
    });
    check("a tool's manifest replaced", &data, &|ground| {
        let file = ground.write("tools/data/pack/.new", manifest("pack", "2.0.0"));
        fs::rename(file, ground.ai("tools/data/pack/tool.yaml")).expect("rename");
    });
    check("two texts", &folders(&["directives/code/review", "knowledge/art"]), &|ground| {
        fs::write(ground.ai("knowledge/art/colours.md"), "# Other\n").expect("write");
        fs::write(ground.ai("directives/code/review/SKILL.md"), super::SKILL).expect("write");
    });
    check("a new category", &Stirred::Everything, &|ground| {
        ground.write("tools/fresh/deep/four.sh", "echo\n");
    });
    check("in the new category", &folders(&["tools/fresh/deep"]), &|ground| {
        fs::write(ground.ai("tools/fresh/deep/four.sh"), "echo 2\n").expect("write");
    });
    check("the category moved", &Stirred::Everything, &|ground| {
        fs::rename(ground.ai("tools/fresh"), ground.ai("tools/moved")).expect("rename");
    });
    check("in the moved category", &folders(&["tools/moved/deep"]), &|ground| {
        fs::write(ground.ai("tools/moved/deep/four.sh"), "echo 3\n").expect("write");
    });
    check("it becomes a tool", &Stirred::Everything, &|ground| {
        ground.write("tools/moved/tool.yaml", manifest("moved", "1.0.0"));
    });
    check("in the new tool", &folders(&["tools"]), &|ground| {
        fs::write(ground.ai("tools/moved/deep/four.sh"), "echo 4\n").expect("write");
    });
    check("it is none any more", &Stirred::Everything, &|ground| {
        fs::remove_file(ground.ai("tools/moved/tool.yaml")).expect("remove");
    });
    check("in the category again", &folders(&["tools/moved/deep"]), &|ground| {
        fs::write(ground.ai("tools/moved/deep/four.sh"), "echo 5\n").expect("write");
    });
    check("a category removed", &Stirred::Everything, &|ground| {
        fs::remove_dir_all(ground.ai("tools/moved")).expect("remove");
    });
    check("a tree that was not there", &Stirred::Everything, &|ground| {
        ground.write("scripts/old.sh", "echo\n");
    });
    check("in that tree", &folders(&["scripts"]), &|ground| {
        fs::write(ground.ai("scripts/old.sh"), "echo 2\n").expect("write");
    });
    check("a file of a package", &Stirred::Everything, &|ground| {
        fs::write(ground.ai("packages/packed/1.0.0/main.sh"), "echo 2\n").expect("write");
    });
    check("a record", &Stirred::Everything, &|ground| {
        fs::write(ground.ai("packages/.records/packed@1.0.0.json"), "{}").expect("write");
    });
    check("a note", &Stirred::Everything, &|ground| fs::remove_file(note(ground)).expect("remove"));
    check("a package by hand", &Stirred::Everything, &|ground| {
        ground.write("packages/by_hand/1.0.0/tool.yaml", manifest("by_hand", "1.0.0"));
    });
}

#[test]
fn nothing_is_told_of_what_is_no_item_or_only_read() {
    let ground = project();
    let mut watcher = watcher(&ground);
    let spaces = ground.spaces();
    for sighting in spaces.sightings(Space::Project).expect("sightings") {
        drop(spaces.sighted(Space::Project, &sighting));
    }
    assert!(!spaces.list(Space::Project).is_empty());
    for path in ["config/kiwi.toml", "logs/audit/x", "cache/x", "tools/data/.one.sh.swp", "knowledge/.x.md"] {
        ground.write(path, "");
    }
    assert_eq!(watcher.wait(Duration::from_millis(300)), Stirred::Nothing);
}

#[test]
fn a_save_in_several_steps_is_told_once_and_a_storm_is_not_waited_out() {
    let ground = project();
    let mut watcher = watcher(&ground);
    // Who is kept from its next step for too long has saved twice; nobody is kept so every time.
    let is_told_once = (0..20).any(|_| {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for step in 0..5 {
                    fs::write(ground.ai("tools/data/one.sh"), format!("echo {step}\n")).expect("write");
                    std::thread::sleep(Duration::from_millis(15));
                }
            });
            assert_eq!(told(&mut watcher, "steps"), folders(&["tools/data"]));
        });
        let is_quiet = watcher.wait(SHORT) == Stirred::Nothing;
        while !is_quiet && watcher.wait(SHORT) != Stirred::Nothing {}
        is_quiet
    });
    assert!(is_told_once);
    std::thread::scope(|scope| {
        let storm = scope.spawn(|| {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_secs(1) {
                fs::write(ground.ai("tools/data/one.sh"), "echo\n").expect("write");
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        assert_eq!(told(&mut watcher, "storm"), folders(&["tools/data"]));
        storm.join().expect("storm");
    });
}

#[test]
fn what_is_made_while_folders_are_made_is_never_lost() {
    let ground = project();
    let mut watcher = watcher(&ground);
    let spaces = ground.spaces();
    let mut known = stamps(&spaces);
    std::thread::scope(|scope| {
        let maker = scope.spawn(|| {
            for number in 0..60 {
                ground.write(&format!("tools/m{}/deep{number}/t{number}.sh", number % 7), "echo\n");
                ground.write(&format!("knowledge/m{}/k{number}.md", number % 7), "text\n");
                std::thread::sleep(Duration::from_millis(7));
            }
        });
        while !maker.is_finished() {
            if watcher.wait(Duration::from_millis(100)) != Stirred::Nothing {
                known = stamps(&spaces);
            }
        }
        while watcher.wait(SHORT) != Stirred::Nothing {
            known = stamps(&spaces);
        }
    });
    settle();
    assert_eq!(known.keys().collect::<Vec<_>>(), stamps(&spaces).keys().collect::<Vec<_>>());
    // And each of the new folders is watched.
    for number in [0, 17, 42, 59] {
        let folder = format!("tools/m{}/deep{number}", number % 7);
        fs::write(ground.ai(&format!("{folder}/t{number}.sh")), "echo 2\n").expect("write");
        assert_eq!(told(&mut watcher, &folder), folders(&[&folder]));
    }
}

#[test]
fn another_space_in_its_place_is_noticed() {
    let ground = project();
    let mut watcher = watcher(&ground);
    fs::rename(ground.ai(""), ground.project().join("was")).expect("rename");
    assert_eq!(told(&mut watcher, "gone"), Stirred::Everything);
    // With nothing to watch, it says so at the end of each wait.
    let begun = Instant::now();
    assert_eq!(watcher.wait(SHORT), Stirred::Everything);
    assert!(begun.elapsed() >= SHORT);
    ground.write("tools/other/x.sh", "echo\n");
    assert_eq!(watcher.wait(SHORT), Stirred::Everything);
    assert_eq!(watcher.wait(SHORT), Stirred::Nothing);
    fs::write(ground.ai("tools/other/x.sh"), "echo 2\n").expect("write");
    assert_eq!(told(&mut watcher, "watched again"), folders(&["tools/other"]));
    // Moved with the folder around it, and another in its place.
    fs::rename(ground.project(), ground.path().join("old")).expect("rename");
    ground.write("tools/third.sh", "echo\n");
    assert_eq!(watcher.wait(SHORT), Stirred::Everything);
    fs::write(ground.ai("tools/third.sh"), "echo 2\n").expect("write");
    assert_eq!(told(&mut watcher, "third"), folders(&["tools"]));
}

#[test]
fn a_wait_can_be_ended_from_outside() {
    let ground = project();
    let mut watcher = watcher(&ground);
    let waker = watcher.waker();
    // Before the wait, and during it.
    waker.clone().wake();
    assert_eq!(told(&mut watcher, "woken before"), Stirred::Nothing);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let begun = Instant::now();
            (watcher.wait(LONG), begun.elapsed())
        });
        std::thread::sleep(Duration::from_millis(100));
        waker.wake();
        let (stirred, after) = waiting.join().expect("waiter");
        assert_eq!(stirred, Stirred::Nothing);
        assert!(after < Duration::from_secs(2), "{after:?}");
    });
}

#[test]
fn more_events_than_the_kernel_keeps_are_anything() {
    let ground = project();
    let mut watcher = watcher(&ground);
    let kept = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").expect("limit");
    let kept: usize = kept.trim().parse().expect("number");
    if kept > 100_000 {
        return;
    }
    for number in 0..kept {
        // By turns: the kernel tells of the same thing twice in a row only once.
        let file = ["tools/data/one.sh", "tools/data/two.sh"][number % 2];
        fs::write(ground.ai(file), "echo\n").expect("write");
    }
    assert_eq!(watcher.wait(LONG), Stirred::Everything);
    assert_eq!(watcher.wait(SHORT), Stirred::Nothing);
}
