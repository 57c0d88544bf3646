//! Spares leave nothing: no process, descriptor, thread or mount. Alone in its file, because it counts those of its process.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
#![expect(clippy::disallowed_methods, reason = "somebody has to start the Kiwi that is killed")]

mod support;

use kiwi_exec::{Backend, Launcher, Unwatched};
use kiwi_model::Isolation;
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use support::sandbox::{BACKENDS, walled, walls};
use support::spares::below;
use support::{Bench, block_on, example, shell, wait_until};

fn count(folder: &str) -> usize {
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

fn mounts() -> usize {
    std::fs::read_to_string("/proc/self/mountinfo").unwrap().lines().count()
}

#[test]
fn nothing_is_left_of_spares() {
    many_runs();
    killed();
    given_back();
}

/// Runs that find a spare, are given up, or run out of time; at the end the launcher is dropped with spares waiting.
fn many_runs() {
    let bench = Bench::new();
    let own = std::process::id().cast_signed();
    let walls = [walls(), vec![(Isolation::Standard, Backend::Auto)]].concat();
    let round = |launcher: Launcher, rounds: usize| {
        launcher.keep_spares();
        let mut most = 0;
        block_on(async {
            for number in 0..rounds {
                let pause = if number % 5 == 3 { "sleep 60" } else { "" };
                // Each way to be held, with each way to end.
                let wall = walls.get((number + number / 5) % walls.len()).unwrap();
                let mut asked = walled(shell(&format!("sleep 0 & {pause}")), wall);
                asked.confinement.network.hosts = vec!["example.org".into()];
                if number % 5 == 3 {
                    asked.timeout = Duration::from_millis(5);
                }
                let run = launcher.run(asked, &Unwatched, std::future::pending());
                if number % 5 == 2 {
                    let _ = tokio::time::timeout(Duration::from_micros(700), run).await;
                } else {
                    assert_eq!(run.await.is_ok(), number % 5 != 3, "{number}");
                }
                if number % 3 == 0 {
                    tokio::time::sleep(Duration::from_millis(40)).await;
                }
                most = most.max(launcher.ready_spares());
            }
        });
        assert!((1..=5).contains(&most), "{most} spares at a time");
        wait_until("a spare waits", || launcher.ready_spares() > 0);
        drop(launcher);
        wait_until("all have left", || below(own).is_empty() && count("/proc/self/task") <= 2);
    };
    let fresh = || Launcher::new(bench.launcher.kiwi(), &bench.launcher.scratch);
    round(fresh(), 20);
    let left = || (count("/proc/self/fd"), mounts());
    let before = left();
    round(fresh(), 60);
    assert_eq!(left(), before, "descriptors, mounts");
}

/// A Kiwi that has spares, at the moment when it stops to run this.
fn caller(bench: &Bench, backend: &str, script: &str, between: &str) -> Command {
    let mut command = Command::new(example("caller"));
    command.arg(bench.launcher.kiwi()).arg(&bench.launcher.scratch);
    command.args([script, backend, between]).stderr(Stdio::null());
    command
}

fn killed() {
    for backend in BACKENDS {
        let bench = Bench::new();
        let stopped = bench.home.path().join("stopped");
        let between = format!("touch {}; exec sleep 3", stopped.display());
        let mut kiwi = caller(&bench, &format!("{backend:?}"), "true", &between).spawn().unwrap();
        wait_until("the spare waits", || stopped.exists());
        let is_ours = |pid: &i32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            !line.starts_with(b"sleep") && !line.starts_with(b"sh")
        };
        let (all, between): (Vec<i32>, Vec<i32>) =
            below(kiwi.id().cast_signed()).into_iter().partition(is_ours);
        // Only `bwrap` needs somebody outside.
        let fewest = if backend == Backend::Bubblewrap { 2 } else { 1 };
        assert!(all.len() >= fewest, "{backend:?} {all:?}");
        kiwi.kill().unwrap();
        kiwi.wait().unwrap();
        // What stopped it was no tool, and ends with nobody.
        for pid in between.into_iter().filter_map(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
        let is_gone = |pid: &i32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.is_empty() || stat.contains(") Z ")
        };
        wait_until("everything has left", || all.iter().all(is_gone));
    }
}

/// A Kiwi that has something mounted while its spare waits: the next tool sees it.
fn given_back() {
    for backend in BACKENDS {
        let bench = Bench::new();
        let host = "mount -t tmpfs inner /usr/local && exec \"$0\" \"$@\"";
        let script = "test -e /usr/local/new/file";
        let between =
            "mkdir -p /usr/local/new && mount -t tmpfs new /usr/local/new && touch /usr/local/new/file";
        let inner = caller(&bench, &format!("{backend:?}"), script, between);
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", host]);
        command.arg(inner.get_program()).args(inner.get_args()).stderr(Stdio::null());
        assert!(command.status().unwrap().success(), "{backend:?}");
        assert!(!Path::new("/usr/local/new").exists());
    }
}
