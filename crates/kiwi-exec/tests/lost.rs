//! A tool that turns against its launcher gains nothing.
//!
//! Alone in its file: when a launcher is lost, Kiwi ends every young child that it did not start itself, and other
//! tests start such children.

mod support;

use kiwi_exec::{ExecError, Unwatched};
use kiwi_model::{ErrorKind, Explain, Piece, Text};
use std::time::Duration;
use support::sandbox::{walled, walls};
use support::{Bench, NOBODY, block_on, file, folder, marked, marker, shell};

#[test]
fn a_tool_that_kills_its_launcher_is_ended_by_kiwi() {
    let bench = Bench::new();
    for script in [
        "kill -9 $PPID; sleep @",
        "setsid sleep @ & (setsid env -i /bin/sleep @ &) ; kill -9 $PPID; exit 0",
        "kill -TERM $PPID; sleep @",
        "trap '' TERM; kill -9 $PPID; while :; do setsid sleep @ & wait $!; done",
    ] {
        let marker = marker();
        let mut asked = shell(&script.replace('@', &marker));
        asked.args.extend([Text::literal("sh"), Text(vec![Piece::Folder { link: 0 }])]);
        asked.packages = vec![folder(0, vec![file("x", b"x", false)])];
        let error = bench.run(asked).unwrap_err();
        assert!(matches!(error, ExecError::Lost), "{error}");
        assert_eq!(error.kind(), ErrorKind::ToolFailed);
        assert_eq!(marked(&marker), NOBODY, "{script}");
        assert_eq!(bench.snapshots(), 0);
    }
}

#[test]
fn a_tool_that_stops_its_launcher_is_ended_when_its_time_is_up() {
    let bench = Bench::new();
    let marker = marker();
    let mut asked = shell(&format!("kill -STOP $PPID; setsid sleep {marker} & sleep {marker}"));
    asked.timeout = Duration::from_millis(200);
    let error = bench.run(asked).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert_eq!(marked(&marker), NOBODY);
}

/// The parent of a process.
fn parent(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn a_sandbox_whose_launcher_is_killed_is_ended() {
    for wall in &walls() {
        let bench = Bench::new();
        let marker = marker();
        let own = std::process::id().cast_signed();
        let asked =
            walled(shell(&format!("trap '' TERM; setsid sleep {marker} & sleep {marker}; true")), wall);
        let kill = async {
            while marked(&marker).len() < 3 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            // Upwards from the tool to the child of this process, which is the launcher.
            let mut launcher = *marked(&marker).first().unwrap();
            while parent(launcher) != Some(own) {
                launcher = parent(launcher).unwrap();
            }
            let launcher = rustix::process::Pid::from_raw(launcher).unwrap();
            rustix::process::kill_process(launcher, rustix::process::Signal::KILL).unwrap();
            std::future::pending::<()>().await;
        };
        let result = block_on(bench.launcher.run(asked, &Unwatched, kill));
        assert!(matches!(result, Err(ExecError::Lost)), "{wall:?} {result:?}");
        assert_eq!(marked(&marker), NOBODY, "{wall:?}");
    }
}
