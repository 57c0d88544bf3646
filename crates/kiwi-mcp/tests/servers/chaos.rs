//! Servers that crash, hang and lie: what they do harms nobody else, and is told as it was.

use crate::support::{Bench, Witness, block_on, call, call_as, chaos, marked, marker, server, unavailable};
use kiwi_mcp::{McpError, Reach, Server, StateKind};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[test]
fn a_server_that_does_not_start_rests_longer_and_longer() {
    let bench = Bench::new();
    block_on(async {
        let exits = chaos("exits", "exit");
        let (problem, stderr) = unavailable(bench.pool.connect(&exits).await.unwrap_err());
        assert_eq!((problem.as_str(), stderr.as_str()), ("ended with exit code 3", "no configuration\n"));
        let begun = Instant::now();
        let (problem, stderr) = unavailable(bench.pool.connect(&exits).await.unwrap_err());
        assert!(begun.elapsed() < Duration::from_millis(50), "it answers at once");
        let expected = "ended with exit code 3 (failure 1 in a row; it may be tried again in 1 s)";
        assert_eq!((problem.as_str(), stderr.as_str()), (expected, "no configuration\n"));
        tokio::time::sleep(Duration::from_millis(600)).await;
        unavailable(bench.pool.connect(&exits).await.unwrap_err());
        let state = bench.pool.states().remove(0);
        let StateKind::Resting { failures: 2, retry_in, .. } = state.kind else { panic!("{state:?}") };
        assert!(retry_in > Duration::from_millis(700), "{retry_in:?}");
        // A person who tries again need not wait.
        bench.pool.reset(&exits.name);
        let (problem, _) = unavailable(bench.pool.connect(&exits).await.unwrap_err());
        assert_eq!(problem, "ended with exit code 3");
        let missing = Reach::Stdio {
            command: "no-such-program".into(),
            args: vec![],
            env: std::collections::BTreeMap::new(),
            cwd: None,
        };
        let (problem, _) = unavailable(bench.pool.connect(&server("missing", missing)).await.unwrap_err());
        assert_eq!(problem, "cannot be started: program `no-such-program` was not found");
        bench.pool.close().await;
    });
}

#[test]
fn a_server_that_hangs_at_the_start_is_ended_with_all_it_started() {
    let bench = Bench::new();
    block_on(async {
        let marker = marker();
        let mut deaf = Server { start_timeout: Duration::from_millis(700), ..chaos("deaf", "deaf") };
        if let Reach::Stdio { args, .. } = &mut deaf.reach {
            args.push(marker.clone());
        }
        let begun = Instant::now();
        let error = bench.pool.connect(&deaf).await.unwrap_err();
        assert_eq!(error, McpError::LateStart { server: "deaf".into(), seconds: 1 });
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
        assert_eq!(marked(&marker), Vec::<i32>::new());
        // Closing does not wait for a start that hangs.
        let hangs = Server { start_timeout: Duration::from_mins(1), ..chaos("hangs", "hang") };
        let (pool, starting) = (Arc::clone(&bench.pool), hangs.clone());
        let waiting = tokio::spawn(async move { pool.connect(&starting).await });
        tokio::time::sleep(Duration::from_millis(200)).await;
        let begun = Instant::now();
        bench.pool.close().await;
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
        assert!(waiting.await.unwrap().is_err());
    });
}

#[test]
fn a_server_that_dies_in_a_call_fails_that_call_with_its_last_words() {
    let bench = Bench::new();
    block_on(async {
        let dies = chaos("dies", "ok");
        let connection = bench.pool.connect(&dies).await.unwrap();
        let begun = Instant::now();
        let (failed, beside) = tokio::join!(
            call(&connection, "die", json!({"code": 9})),
            call(&connection, "wait", json!({"seconds": 10})),
        );
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        let (problem, stderr) = unavailable(failed.unwrap_err());
        assert_eq!((problem.as_str(), stderr.as_str()), ("ended with exit code 9", "about to die\n"));
        assert_eq!(unavailable(beside.unwrap_err()).0, "ended with exit code 9");
        let (problem, _) = unavailable(bench.pool.connect(&dies).await.unwrap_err());
        assert!(problem.contains("it may be tried again in 1 s"), "{problem}");
        tokio::time::sleep(Duration::from_millis(600)).await;
        let again = bench.pool.connect(&dies).await.unwrap();
        assert_ne!(again.generation(), connection.generation());
        assert_eq!(call(&again, "echo", json!({"text": "alive"})).await.unwrap().text(), "alive");
        bench.pool.close().await;
    });
}

#[test]
fn a_late_answer_hurts_nobody() {
    let bench = Bench::new();
    block_on(async {
        let late = Server { timeout: Duration::from_millis(200), ..chaos("late", "ok") };
        let connection = bench.pool.connect(&late).await.unwrap();
        let error = call(&connection, "wait", json!({"seconds": 0.5})).await.unwrap_err();
        assert!(matches!(error, McpError::Timeout { .. }), "{error:?}");
        for number in 0..40 {
            let text = number.to_string();
            assert_eq!(call(&connection, "echo", json!({"text": text})).await.unwrap().text(), text);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(call(&connection, "twice", json!({})).await.unwrap().text(), "first");
        assert_eq!(call(&connection, "echo", json!({"text": "x"})).await.unwrap().text(), "x");
        bench.pool.close().await;
    });
}

#[test]
fn garbage_is_passed_over_and_a_giant_answer_fails_its_call_alone() {
    let bench = Bench::new();
    block_on(async {
        let connection = bench.pool.connect(&chaos("garbage", "ok")).await.unwrap();
        assert_eq!(call(&connection, "garbage", json!({})).await.unwrap().text(), "after garbage");
        let large = call(&connection, "giant", json!({"size": 8 << 20})).await.unwrap();
        assert_eq!(large.text().len(), 8 << 20);
        let before = memory();
        let error = call(&connection, "giant", json!({"size": 200 << 20})).await.unwrap_err();
        let McpError::Protocol { message, .. } = error else { panic!("{error:?}") };
        assert_eq!(message, "the server's answer is longer than 16 MiB");
        assert!(memory() < before + (64 << 20), "{before} {}", memory());
        assert_eq!(call(&connection, "echo", json!({"text": "still"})).await.unwrap().text(), "still");
        bench.pool.close().await;
    });
}

#[test]
fn floods_cost_little_and_block_nobody() {
    let bench = Bench::new();
    block_on(async {
        let connection = bench.pool.connect(&chaos("floods", "ok")).await.unwrap();
        let hears = Arc::new(Witness::default());
        let before = memory();
        let answer = call_as(&connection, "flood", json!({"count": 20000}), hears.clone()).await.unwrap();
        assert_eq!(answer.text(), "flooded");
        assert_eq!(hears.logs.lock().unwrap().len(), 20000, "in order, before the answer");
        assert!(bench.changes() < 500, "{}", bench.changes());
        assert_eq!(
            call(&connection, "complain", json!({"count": 50000})).await.unwrap().text(),
            "complained"
        );
        assert!(memory() < before + (64 << 20), "{before} {}", memory());
        // Questions nobody can answer are refused as they come.
        assert_eq!(call(&connection, "many", json!({"count": 5000})).await.unwrap().text(), "asked a lot");
        assert_eq!(call(&connection, "echo", json!({"text": "x"})).await.unwrap().text(), "x");
        bench.pool.close().await;
    });
}

#[test]
fn a_dead_or_slow_server_does_not_delay_another() {
    let bench = Bench::new();
    block_on(async {
        let good = chaos("good", "ok");
        bench.call(&good, "echo", json!({})).await.unwrap();
        let hangs = Server { start_timeout: Duration::from_secs(30), ..chaos("hangs", "hang") };
        let slow = chaos("slow", "ok");
        let mut waiting = tokio::task::JoinSet::new();
        for number in 0..10 {
            let (pool, hangs, slow) = (Arc::clone(&bench.pool), hangs.clone(), slow.clone());
            waiting.spawn(async move {
                let server = if number % 2 == 0 { hangs } else { slow };
                let connection = pool.connect(&server).await?;
                call(&connection, "hang", json!({})).await
            });
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        let begun = Instant::now();
        for _ in 0..50 {
            bench.call(&good, "echo", json!({})).await.unwrap();
        }
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        waiting.abort_all();
        bench.pool.close().await;
    });
}

/// Older servers may say nothing to a question they do not know, and any may take its time to start.
#[test]
fn who_does_not_say_what_it_speaks_is_greeted_in_the_old_way() {
    let bench = Bench::new();
    block_on(async {
        // Half of the time to start is waited for an answer; the slow one speaks after that, in whichever way.
        let greet = async |mode: &str| {
            let server = Server { start_timeout: Duration::from_secs(8), ..chaos(mode, mode) };
            let connection = bench.pool.connect(&server).await.unwrap();
            assert_eq!(connection.protocol_version(), "2025-06-18", "{mode}");
            assert_eq!(call(&connection, "echo", json!({"text": mode})).await.unwrap().text(), mode);
        };
        tokio::join!(greet("mute"), greet("slow"));
        bench.pool.close().await;
    });
}

#[test]
fn a_list_without_end_is_refused() {
    let bench = Bench::new();
    block_on(async {
        let connection = bench.pool.connect(&chaos("endless", "endless")).await.unwrap();
        let (problem, _) = unavailable(connection.list().await.unwrap_err());
        assert_eq!(problem, "lists its tools without end");
        bench.pool.close().await;
    });
}

/// Bytes this process has in memory.
fn memory() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}
