//! Many starts, kills and hangs leave no process, no descriptor, no task and no memory behind. Alone in its file,
//! because it counts those of its process.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking"
)]

mod support;

use kiwi_mcp::{Reach, Server};
use serde_json::json;
use std::time::Duration;
use support::{Bench, block_on, call, chaos, marked, marker, wait_until};

fn count(folder: &str) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

fn children() -> usize {
    std::fs::read_dir("/proc/self/task")
        .unwrap()
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .map(|children| children.split_whitespace().count())
        .sum()
}

/// Bytes this process has in memory.
fn memory() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
fn many_starts_kills_and_hangs_leave_nothing() {
    let cycles = if std::env::var_os("KIWI_SOAK").is_some() { 2000 } else { 200 };
    let bench = Bench::new();
    let marker = marker();
    let of_mode = |name: &str, mode: &str| {
        let mut server = Server { start_timeout: Duration::from_secs(20), ..chaos(name, mode) };
        if let Reach::Stdio { args, .. } = &mut server.reach {
            args.push(marker.clone());
        }
        server
    };
    block_on(async {
        let (good, exits) = (of_mode("good", "ok"), of_mode("exits", "exit"));
        let hangs = Server { start_timeout: Duration::from_millis(150), ..of_mode("hangs", "hang") };
        let cycle = async |number: usize| {
            match number % 8 {
                // It does not start.
                0 => assert!(bench.pool.connect(&exits).await.is_err()),
                // It hangs while it starts.
                1 if number % 16 == 1 => assert!(bench.pool.connect(&hangs).await.is_err()),
                // It dies in a call.
                2 => {
                    let connection = bench.pool.connect(&good).await.unwrap();
                    assert!(call(&connection, "die", json!({})).await.is_err());
                }
                // It is killed while it runs, and so is what it started.
                3 => {
                    let connection = bench.pool.connect(&good).await.unwrap();
                    call(&connection, "children", json!({"mark": marker})).await.unwrap();
                    bench.pool.stop(&good.name).await;
                }
                // It hangs in a call that nobody waits for.
                4 => {
                    let connection = bench.pool.connect(&good).await.unwrap();
                    let hung =
                        tokio::time::timeout(Duration::from_millis(5), call(&connection, "hang", json!({})));
                    assert!(hung.await.is_err());
                    bench.pool.stop(&good.name).await;
                }
                // Nobody waits even for its start.
                5 => {
                    let start =
                        tokio::time::timeout(Duration::from_millis(2), bench.pool.connect(&good)).await;
                    assert!(start.is_err());
                }
                _ => {
                    let connection = bench.pool.connect(&good).await.unwrap();
                    assert_eq!(call(&connection, "echo", json!({"text": "x"})).await.unwrap().text(), "x");
                    bench.pool.stop(&good.name).await;
                }
            }
            for server in [&good, &exits, &hangs] {
                bench.pool.reset(&server.name);
            }
        };
        let settle = async || {
            bench.pool.connect(&good).await.unwrap();
            bench.pool.stop(&good.name).await;
            wait_until("all processes have gone", || children() == 0 && marked(&marker).is_empty()).await;
            wait_until("all threads have gone", || count("/proc/self/task") <= 3).await;
            let metrics = tokio::runtime::Handle::current().metrics();
            wait_until("all tasks have gone", || metrics.num_alive_tasks() <= 1).await;
        };
        for number in 0..48 {
            cycle(number).await;
        }
        settle().await;
        let (descriptors, used) = (count("/proc/self/fd"), memory());
        for number in 0..cycles {
            cycle(number).await;
        }
        settle().await;
        assert_eq!(count("/proc/self/fd"), descriptors, "descriptors");
        assert!(memory() < used + (16 << 20), "memory grew from {used} to {}", memory());
        bench.pool.close().await;
    });
    assert_eq!(marked(&marker), Vec::<i32>::new());
}
