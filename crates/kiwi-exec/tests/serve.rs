//! Processes that stay: their streams, their end, and what they leave behind.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod support;

use kiwi_exec::{ExecError, Exit, Serving};
use kiwi_model::Isolation;
use std::time::{Duration, Instant};
use support::sandbox::{all_walls, python, walled};
use support::{Bench, NOBODY, block_on, marked, marker, process, shell, wait_for_marked};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

const ECHO: &str = "while read -r line; do echo \"got $line\"; done; echo over >&2; exit 7";

async fn talk(serving: &mut Serving) {
    let mut output = BufReader::new(serving.output.take().unwrap());
    let input = serving.input.as_mut().unwrap();
    for number in 0..3 {
        input.write_all(format!("{number}\n").as_bytes()).await.unwrap();
        let mut line = String::new();
        output.read_line(&mut line).await.unwrap();
        assert_eq!(line, format!("got {number}\n"));
    }
}

#[test]
fn a_server_is_spoken_to_and_ends_when_its_input_does() {
    let bench = Bench::new();
    block_on(async {
        for isolation in [Isolation::Trusted, Isolation::Standard] {
            let asked = kiwi_exec::Process { isolation, ..shell(ECHO) };
            let mut serving = bench.launcher.serve(asked).await.unwrap();
            talk(&mut serving).await;
            assert!(!serving.has_ended());
            drop(serving.input.take());
            assert_eq!(serving.ended().await.unwrap(), Exit::Code(7));
            assert_eq!(serving.said(), "over\n");
            assert!(serving.has_ended());
        }
    });
}

#[test]
fn a_server_lives_behind_walls() {
    let bench = Bench::new();
    block_on(async {
        // Who leaves by itself is given time for it: a container is removed meanwhile.
        let launcher = bench.launcher.clone().with_grace(Duration::from_secs(10));
        for wall in &all_walls() {
            let mut serving = launcher.serve(walled(shell(ECHO), wall)).await.unwrap();
            talk(&mut serving).await;
            assert_eq!(serving.stop().await.unwrap(), Exit::Code(7), "{wall:?}");
        }
    });
}

#[test]
fn what_does_not_start_says_why() {
    let bench = Bench::new();
    block_on(async {
        let missing = bench.launcher.serve(process("no-such-program", &[])).await;
        assert!(matches!(missing, Err(ExecError::ProgramNotFound { .. })), "{missing:?}");
        let serving = bench.launcher.serve(process("/etc/passwd", &[])).await;
        let end = match serving {
            Ok(serving) => serving.ended().await.unwrap_err().to_string(),
            Err(error) => error.to_string(),
        };
        assert!(end.contains("/etc/passwd"), "{end}");
    });
}

#[test]
fn stopping_gives_time_and_then_no_more() {
    let bench = Bench::new();
    let marker = marker();
    block_on(async {
        let script = format!("trap '' TERM; sleep {marker} & while :; do sleep {marker}; done");
        let serving = bench.launcher.serve(shell(&script)).await.unwrap();
        wait_for_marked(&marker, 3);
        let begun = Instant::now();
        let end = serving.stop().await;
        assert!(matches!(end.unwrap_err().as_ref(), ExecError::Cancelled));
        // The grace for leaving by itself, and the grace for being asked.
        assert!((Duration::from_millis(600)..Duration::from_secs(3)).contains(&begun.elapsed()));
        assert_eq!(marked(&marker), NOBODY);
    });
}

#[test]
fn dropping_it_ends_everything() {
    let bench = Bench::new();
    let marker = marker();
    block_on(async {
        let script = format!("setsid sleep {marker} & trap '' TERM; sleep {marker}; sleep {marker}");
        let serving = bench.launcher.serve(shell(&script)).await.unwrap();
        wait_for_marked(&marker, 3);
        drop(serving);
        let deadline = Instant::now() + Duration::from_secs(5);
        while !marked(&marker).is_empty() {
            assert!(Instant::now() < deadline, "it goes on");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    // And when nothing but the runtime goes.
    let serving = block_on(async {
        let serving = bench.launcher.serve(shell(&format!("sleep {marker}"))).await.unwrap();
        wait_for_marked(&marker, 2);
        serving
    });
    wait_for_marked(&marker, 0);
    let end = block_on(serving.ended());
    assert!(matches!(end.unwrap_err().as_ref(), ExecError::Lost));
}

#[test]
fn a_flood_on_standard_error_blocks_nobody_and_its_end_is_kept() {
    let bench = Bench::new();
    block_on(async {
        let script = "import sys\nfor n in range(200000): sys.stderr.write(f'line {n} ' + 'x' * 60 + '\\n')\n\
                      sys.stderr.flush()\nprint('done', flush=True)\nsys.stdin.read()";
        let mut serving = bench.launcher.serve(python(script)).await.unwrap();
        let mut output = BufReader::new(serving.output.take().unwrap());
        let mut line = String::new();
        let read = tokio::time::timeout(Duration::from_secs(20), output.read_line(&mut line)).await;
        read.unwrap().unwrap();
        assert_eq!(line, "done\n");
        let said = loop {
            let said = serving.said();
            if said.contains("line 199999 ") {
                break said;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        assert!(said.len() <= 64 << 10, "{}", said.len());
        assert_eq!(serving.stop().await.unwrap(), Exit::Code(0));
    });
}

#[test]
fn a_reader_that_does_not_read_holds_a_server_up_but_not_its_end() {
    let bench = Bench::new();
    block_on(async {
        let serving = bench.launcher.serve(process("yes", &[])).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!serving.has_ended());
        assert_eq!(serving.stop().await.unwrap(), Exit::Signal(13));
        let mut serving = bench.launcher.serve(shell("echo last; exit 3")).await.unwrap();
        assert_eq!(serving.ended().await.unwrap(), Exit::Code(3));
        let mut all = String::new();
        serving.output.take().unwrap().read_to_string(&mut all).await.unwrap();
        assert_eq!(all, "last\n", "what it wrote before its end can still be read");
    });
}
