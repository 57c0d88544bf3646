//! Limits hold, or the call is refused.

mod support;

use kiwi_exec::{Backend, Exit, Limits, Process};
use kiwi_model::{ErrorKind, Explain, Isolation};
use std::path::Path;
use support::sandbox::{Wall, all_walls, is_root, python, walled};
use support::spares::warm_up;
use support::{Bench, shell, wait_until};

/// Every level with limits.
fn levels() -> Vec<Wall> {
    [all_walls(), vec![(Isolation::Standard, Backend::Auto)]].concat()
}

fn limited(asked: Process, wall: &Wall, limits: Limits) -> Process {
    let mut asked = walled(asked, wall);
    asked.confinement.limits = limits;
    asked
}

/// Folders that launchers made and did not remove.
fn groups() -> usize {
    ["memory", "pids", "unified", "."]
        .iter()
        .filter_map(|name| std::fs::read_dir(Path::new("/sys/fs/cgroup").join(name)).ok())
        .flat_map(Iterator::flatten)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("kiwi-"))
        .count()
}

#[test]
fn a_memory_bomb_stays_inside_its_limit() {
    let bench = Bench::new();
    let memory = Some(64 << 20);
    for wall in &levels() {
        let limits = Limits { memory, ..Limits::default() };
        let bomb = "x = []\nwhile True: x.append(bytearray(1 << 20))";
        let result = bench.run(limited(python(bomb), wall, limits));
        if is_root() || matches!(wall.1, Backend::Container(_)) {
            assert_eq!(result.unwrap().exit, Exit::Signal(9), "{wall:?}");
            // Together, too.
            let many = "import os, time\nfor i in range(8):\n  if os.fork() == 0:\n    x = bytearray(20 << 20)\n    time.sleep(20)\n    os._exit(0)\nprint(sum(os.waitstatus_to_exitcode(os.wait()[1]) == -9 for i in range(4)))";
            assert_eq!(bench.output(limited(python(many), wall, limits)), "4\n", "{wall:?}");
            assert_eq!(bench.output(limited(python("print('small')"), wall, limits)), "small\n");
        } else {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::SandboxUnavailable, "{wall:?} {error}");
            assert!(error.to_string().contains("`memory`"), "{error}");
        }
    }
    wait_until("all groups are gone", || groups() == 0);
}

#[test]
fn a_fork_bomb_stays_inside_its_limit() {
    let bench = Bench::new();
    let bomb = "import os, time\nn = 0\ntry:\n  while n < 200:\n    if os.fork() == 0: time.sleep(20); os._exit(0)\n    n += 1\nexcept OSError: pass\nprint(n)";
    for wall in &levels() {
        let limits = Limits { pids: Some(10), ..Limits::default() };
        let result = bench.run(limited(python(bomb), wall, limits));
        if is_root() || wall.0 != Isolation::Standard {
            let made: usize = String::from_utf8(result.unwrap().stdout).unwrap().trim().parse().unwrap();
            // The one that counts is itself one of the ten.
            assert!((8..=9).contains(&made), "{wall:?}: {made}");
        } else {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::SandboxUnavailable, "{wall:?}");
        }
        let all = "bomb() { bomb | bomb & }; bomb; sleep 0.3; exit 0";
        if is_root() || wall.0 != Isolation::Standard {
            let _ = bench.run(limited(shell(all), wall, limits)).unwrap();
        }
    }
    wait_until("all groups are gone", || groups() == 0);
}

/// As many processes at one time as there can be, and no more than so many.
fn crowd(most: usize) -> Process {
    python(&format!(
        "import os, time\nn = 0\ntry:\n  while n < {most}:\n    if os.fork() == 0: time.sleep(60); os._exit(0)\n    n += 1\nexcept OSError: pass\nprint(n, flush=True)\nos.kill(-1, 9)"
    ))
}

#[test]
fn behind_walls_there_is_room_for_a_thousand_where_nothing_else_is_said() {
    let bench = Bench::new();
    let made = |bench: &Bench, asked: Process| -> usize { bench.output(asked).trim().parse().unwrap() };
    for wall in &all_walls() {
        let is_contained = matches!(wall.1, Backend::Container(_));
        let room = 1000..=1324;
        let most = made(&bench, walled(crowd(3000), wall));
        assert!(room.contains(&most), "{wall:?}: {most}");
        // Who needs more says so.
        let limits = Limits { pids: Some(2000), ..Limits::default() };
        assert_eq!(made(&bench, limited(crowd(1500), wall, limits)), 1500, "{wall:?}");
        if !is_contained {
            let bench = Bench::with_spares();
            warm_up(&bench, &walled(shell("true"), wall));
            let most = made(&bench, walled(crowd(3000), wall));
            assert!(room.contains(&most), "a spare, {wall:?}: {most}");
        }
    }
    wait_until("all groups are gone", || groups() == 0);
}

#[test]
fn processor_time_and_open_files_are_limited() {
    let bench = Bench::new();
    for wall in &levels() {
        let limits = Limits { cpu: Some(0.5), files: Some(20), ..Limits::default() };
        let exit = bench.run(limited(shell("while :; do :; done"), wall, limits)).unwrap().exit;
        assert_eq!(exit, Exit::Signal(24), "{wall:?}");
        let open =
            "x = []\ntry:\n  while True: x.append(open('/dev/null'))\nexcept OSError: print(len(x) < 20)";
        assert_eq!(bench.output(limited(python(open), wall, limits)), "True\n", "{wall:?}");
    }
    // As the user means as the user.
    let limits = Limits { files: Some(20), memory: Some(1), ..Limits::default() };
    let output = bench.output(limited(shell("ulimit -n"), &(Isolation::Trusted, Backend::Auto), limits));
    assert_ne!(output, "20\n");
}
