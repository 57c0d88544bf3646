//! A tool that turns against its launcher gains nothing.
//!
//! Alone in its file: when a launcher is lost, Kiwi ends every young child that it did not start itself, and other
//! tests start such children.

mod support;

use kiwi_exec::ExecError;
use kiwi_model::{ErrorKind, Explain, Piece, Text};
use std::time::Duration;
use support::{Bench, NOBODY, file, folder, marked, marker, shell};

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
