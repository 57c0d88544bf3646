//! Kiwi is killed with -9 while a tool runs in a sandbox: nothing runs on, nothing lies about.
#![expect(clippy::disallowed_methods, reason = "somebody has to start the Kiwi that is killed")]

mod support;

use std::process::{Command, Stdio};
use std::time::Duration;
use support::sandbox::BACKENDS;
use support::{Bench, example, marked, marker, wait_for_marked, wait_until};

#[test]
fn killing_kiwi_ends_everything_and_removes_its_files() {
    for backend in BACKENDS {
        let bench = Bench::new();
        let marker = marker();
        let caller = |script: &str| {
            Command::new(example("caller"))
                .arg(bench.launcher.kiwi())
                .arg(&bench.launcher.scratch)
                .arg(script)
                .arg(format!("{backend:?}"))
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        };
        let script = format!(
            "trap '' TERM; setsid sleep {marker} & (setsid setsid sleep {marker} &) ; sleep {marker}; sleep {marker}"
        );
        let mut kiwi = caller(&script);
        // The three that sleep, the shell whose script names them, and Kiwi.
        wait_for_marked(&marker, 5);
        assert_eq!(bench.snapshots(), 1);
        kiwi.kill().unwrap();
        kiwi.wait().unwrap();
        wait_for_marked(&marker, 0);
        wait_until("the snapshot is gone", || bench.snapshots() == 0);

        for round in 0..30 {
            let mut kiwi = caller(&format!("setsid sleep {marker} & sleep {marker}"));
            std::thread::sleep(Duration::from_micros(400 * round));
            kiwi.kill().unwrap();
            kiwi.wait().unwrap();
        }
        wait_for_marked(&marker, 0);
        wait_until("the snapshots are gone", || bench.snapshots() == 0);
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!((marked(&marker).len(), bench.snapshots()), (0, 0), "{backend:?}");
    }
}
