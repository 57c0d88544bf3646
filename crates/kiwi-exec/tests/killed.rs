//! Kiwi itself is killed with -9: nothing runs on, nothing lies about.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
#![expect(clippy::disallowed_methods, reason = "somebody has to start the Kiwi that is killed")]

mod support;

use std::process::{Command, Stdio};
use std::time::Duration;
use support::{Bench, example, marker, wait_for_marked, wait_until};

fn caller(bench: &Bench, script: &str) -> std::process::Child {
    Command::new(example("caller"))
        .arg(bench.launcher.kiwi())
        .arg(&bench.launcher.scratch)
        .arg(script)
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn killing_kiwi_ends_everything_and_removes_its_files() {
    let bench = Bench::new();
    let marker = marker();
    let script = format!(
        "chmod 0 $1/sub; trap '' TERM; setsid sleep {marker} & (setsid setsid sleep {marker} &) ; sleep {marker}; sleep {marker}"
    );
    let mut kiwi = caller(&bench, &script);
    // The three that sleep, the shell whose script names them, and Kiwi.
    wait_for_marked(&marker, 5);
    assert_eq!(bench.snapshots(), 1);
    kiwi.kill().unwrap();
    kiwi.wait().unwrap();
    wait_for_marked(&marker, 0);
    wait_until("the snapshot is gone", || bench.snapshots() == 0);
}

#[test]
fn killing_kiwi_at_any_moment_leaves_nothing() {
    let bench = Bench::new();
    let marker = marker();
    for round in 0..40 {
        let mut kiwi = caller(&bench, &format!("setsid sleep {marker} & sleep {marker}"));
        std::thread::sleep(Duration::from_micros(150 * round));
        kiwi.kill().unwrap();
        kiwi.wait().unwrap();
    }
    wait_for_marked(&marker, 0);
    wait_until("the snapshots are gone", || bench.snapshots() == 0);
    // Nothing may appear late either.
    std::thread::sleep(Duration::from_millis(200));
    wait_for_marked(&marker, 0);
    assert_eq!(bench.snapshots(), 0);
}
