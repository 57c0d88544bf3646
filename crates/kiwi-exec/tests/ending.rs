//! When a process ends, is ended or is given up, nothing of it stays.

mod support;

use kiwi_exec::{ExecError, Exit, Unwatched};
use kiwi_model::{ErrorKind, Explain};
use std::time::{Duration, Instant};
use support::{Bench, NOBODY, block_on, marked, marker, process, shell, wait_for_marked, wait_until};

fn with_timeout(script: &str, timeout: Duration) -> kiwi_exec::Process {
    kiwi_exec::Process { timeout, ..shell(script) }
}

#[test]
fn a_process_that_takes_too_long_is_asked_to_end() {
    let bench = Bench::new();
    let marker = marker();
    let script = format!("trap 'echo asked; exit 0' TERM; echo started; sleep {marker} & wait");
    let started = Instant::now();
    match bench.run(with_timeout(&script, Duration::from_millis(400))).unwrap_err() {
        ExecError::Timeout { after, stdout, .. } => {
            assert_eq!(after, Duration::from_millis(400));
            assert_eq!(String::from_utf8(stdout).unwrap(), "started\nasked\n");
        }
        other => panic!("{other}"),
    }
    assert!(started.elapsed() >= Duration::from_millis(400));
    assert_eq!(marked(&marker), NOBODY);
}

#[test]
fn a_process_that_does_not_listen_is_killed_after_the_grace() {
    let bench = Bench::new();
    let marker = marker();
    let script = format!("trap '' TERM; sleep {marker} & sleep {marker}; sleep {marker}");
    let started = Instant::now();
    let error = bench.run(with_timeout(&script, Duration::from_millis(300))).unwrap_err();
    let took = started.elapsed();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(error.to_string(), "the tool did not finish within 0.300 s");
    assert!((Duration::from_millis(600)..Duration::from_millis(2300)).contains(&took), "{took:?}");
    assert_eq!(marked(&marker), NOBODY);
}

#[test]
fn what_a_process_leaves_in_the_background_ends_with_it() {
    let bench = Bench::new();
    for leave in [
        "sleep @ &",
        "setsid sleep @ & setsid setsid sleep @ &",
        "(setsid sh -c 'setsid sleep @ & setsid sleep @ & exit' &)",
        "sh -c 'trap \"\" TERM HUP; sleep @; sleep @' & setsid sh -c 'trap \"\" TERM; sleep @; sleep @' &",
        "sleep @ & kill -STOP $!",
        "setsid env -i /bin/sleep @ < /dev/null > /dev/null 2>&1 &",
        "sh -c 'while :; do sleep @ & wait $!; done' &",
    ] {
        let marker = marker();
        let script = format!("{}\nsleep 0.05; echo done; exit 3", leave.replace('@', &marker));
        let finished = bench.run(shell(&script)).unwrap();
        assert_eq!(finished.exit, Exit::Code(3), "{leave}");
        assert_eq!(finished.stdout, b"done\n", "{leave}");
        assert_eq!(marked(&marker), NOBODY, "{leave}");
    }
}

#[test]
fn a_process_that_forks_without_end_is_ended() {
    let bench = Bench::new();
    let marker = marker();
    let script = format!(
        "trap '' TERM; for i in 1 2 3; do (while :; do setsid sleep {marker} & sleep 0.001; done) & done; wait"
    );
    let error = bench.run(with_timeout(&script, Duration::from_millis(400))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(marked(&marker), NOBODY);
}

#[test]
fn a_process_that_hangs_in_an_open_is_ended() {
    let bench = Bench::new();
    let marker = marker();
    let fifo = bench.home.path().join(format!("fifo-{marker}"));
    let script = format!("mkfifo {0}; (cat {0}) & cat < {0}", fifo.display());
    let error = bench.run(with_timeout(&script, Duration::from_millis(300))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(marked(&marker), NOBODY);
}

#[test]
fn signalling_its_own_group_hits_only_the_tool() {
    let bench = Bench::new();
    assert_eq!(bench.run(shell("kill -9 0; sleep 5")).unwrap().exit, Exit::Signal(9));
}

#[test]
fn closing_its_output_does_not_end_a_process() {
    let bench = Bench::new();
    let finished = bench.run(shell("echo here; exec >&- 2>&-; sleep 0.3; exit 4")).unwrap();
    assert_eq!((finished.exit, finished.stdout.as_slice()), (Exit::Code(4), &b"here\n"[..]));
}

#[test]
fn cancelling_ends_everything_before_it_returns() {
    let bench = Bench::new();
    let marker = marker();
    let script = format!("setsid sleep {marker} & trap '' TERM; sleep {marker}; sleep {marker}");
    let cancel = async {
        while marked(&marker).len() < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let result = block_on(bench.launcher.run(shell(&script), &Unwatched, cancel));
    assert!(matches!(result, Err(ExecError::Cancelled)), "{result:?}");
    assert_eq!(marked(&marker), NOBODY);
    // Cancelled before it began.
    let result =
        block_on(bench.launcher.run(process("sleep", &[&marker]), &Unwatched, std::future::ready(())));
    assert!(matches!(result, Err(ExecError::Cancelled)), "{result:?}");
    wait_for_marked(&marker, 0);
}

#[test]
fn dropping_the_future_ends_everything() {
    let bench = Bench::new();
    let marker = marker();
    let script = format!("setsid sleep {marker} & sleep {marker}");
    let launcher = bench.launcher.clone();
    block_on(async {
        let run = launcher.run(shell(&script), &Unwatched, std::future::pending());
        let timeout = tokio::time::timeout(Duration::from_millis(300), run).await;
        assert!(timeout.is_err());
    });
    wait_for_marked(&marker, 0);
}

#[test]
fn many_processes_run_at_once() {
    let bench = Bench::new();
    let outputs = block_on(async {
        let local = tokio::task::LocalSet::new();
        let handles: Vec<_> = (0..40)
            .map(|number| {
                let launcher = bench.launcher.clone();
                local.spawn_local(async move {
                    let asked = shell(&format!("sleep 0.2; echo {number}"));
                    launcher.run(asked, &Unwatched, std::future::pending()).await
                })
            })
            .collect();
        local.await;
        let mut outputs = Vec::new();
        for handle in handles {
            outputs.push(String::from_utf8(handle.await.unwrap().unwrap().stdout).unwrap());
        }
        outputs
    });
    assert_eq!(outputs, (0..40).map(|number| format!("{number}\n")).collect::<Vec<_>>());
}

#[test]
fn a_run_can_be_given_to_another_thread() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    let bench = Bench::new();
    let launcher = bench.launcher.clone();
    let run = is_send(async move { launcher.run(shell("echo x"), &Unwatched, std::future::pending()).await });
    assert_eq!(std::thread::spawn(|| block_on(run)).join().unwrap().unwrap().stdout, b"x\n");
    wait_until("the scratch folder is empty", || bench.snapshots() == 0);
}
