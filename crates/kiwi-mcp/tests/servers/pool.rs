//! One connection for each server: shared, described, stopped, and told apart by credentials.

use crate::support::{
    Bench, Witness, block_on, call, call_as, chaos, marked, marker, unavailable, wait_until,
};
use kiwi_mcp::{Capability, McpError, Reach, StateKind};
use kiwi_model::Isolation;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

async fn pid(bench: &Bench, server: &kiwi_mcp::Server) -> i64 {
    let text = bench.call(server, "env", json!({})).await.unwrap().text();
    serde_json::from_str::<Value>(&text).unwrap()["pid"].as_i64().unwrap()
}

#[test]
fn a_server_is_listed_and_called() {
    let bench = Bench::new();
    block_on(async {
        for mode in ["ok", "noisy"] {
            let connection = bench.pool.connect(&chaos(mode, mode)).await.unwrap();
            let listing = connection.list().await.unwrap();
            assert!(listing.tools.len() > 15, "more than one page");
            let echo = &listing.tools[0];
            assert_eq!((echo.name.as_str(), echo.description.as_deref()), ("echo", Some("does echo")));
            assert_eq!(echo.input_schema, json!({"type": "object", "$comment": "echo"}));
            assert_eq!(
                json!(echo.annotations),
                json!({"readOnlyHint": true, "x-own": true}),
                "nothing is lost"
            );
            assert_eq!(listing.protocol_version, "2025-06-18");
            assert_eq!(listing.instructions.as_deref(), Some("be careful"));
            assert_eq!(listing.server_info["name"], "chaos");
            assert_eq!(listing.capabilities["tools"]["listChanged"], true);
            let answer = call(&connection, "echo", json!({"text": "hi"})).await.unwrap();
            assert_eq!(answer.text(), "hi");
            assert_eq!(answer.value(), json!({"echo": {"text": "hi"}, "x-unknown": [1]}));
            assert_eq!(answer.0["x-extra"], 7, "nothing is lost");
            let refused = call(&connection, "refuse", json!({})).await.unwrap_err();
            let McpError::Protocol { code, message, data, .. } = refused else { panic!("{refused:?}") };
            assert_eq!((code, message.as_str(), data), (-32000, "not today", Some(json!({"why": "x"}))));
        }
        bench.pool.close().await;
        assert!(bench.pool.connect(&chaos("ok", "ok")).await.is_err(), "closed is closed");
    });
}

#[test]
fn callers_share_a_connection_and_first_ones_wait_for_one_start() {
    let bench = Bench::new();
    block_on(async {
        let server = chaos("shared", "ok");
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let (pool, server) = (Arc::clone(&bench.pool), server.clone());
            tasks.spawn(async move {
                let connection = pool.connect(&server).await.unwrap();
                let text = call(&connection, "env", json!({})).await.unwrap().text();
                (connection.generation(), serde_json::from_str::<Value>(&text).unwrap()["pid"].clone())
            });
        }
        let all = tasks.join_all().await;
        assert!(all.iter().all(|one| *one == all[0]), "{all:?}");
        // The first caller may leave: the others still wait for the same start.
        let other = chaos("left", "ok");
        let first = tokio::time::timeout(Duration::from_millis(1), bench.pool.connect(&other)).await;
        assert!(first.is_err());
        assert!(bench.pool.states().iter().any(|state| state.kind == StateKind::Starting));
        bench.pool.connect(&other).await.unwrap();
        bench.pool.close().await;
    });
}

#[test]
fn other_credentials_are_another_connection_and_variables_are_looked_up() {
    let bench = Bench::new();
    block_on(async {
        let with = |value: &str| {
            let mut server = chaos("same", "ok");
            if let Reach::Stdio { env, .. } = &mut server.reach {
                env.insert("TOKEN".into(), value.into());
            }
            server
        };
        let (one, two) = (with("${SECRET}"), with("other"));
        let (first, second) = (pid(&bench, &one).await, pid(&bench, &two).await);
        assert_ne!(first, second);
        assert_eq!(pid(&bench, &one).await, first);
        assert_eq!(pid(&bench, &with("opensesame")).await, first, "reached in the same way");
        let text = bench.call(&one, "env", json!({})).await.unwrap().text();
        let seen: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&seen["env"]["TOKEN"], &seen["env"]["BASE"]), (&json!("opensesame"), &json!("base")));
        assert_eq!(seen["env"]["HOME"], Value::Null, "only what is given");
        let folder = std::fs::canonicalize(bench.folder.path()).unwrap();
        assert_eq!(seen["cwd"], json!(folder));
        let (problem, _) = unavailable(bench.pool.connect(&with("${MISSING}")).await.unwrap_err());
        assert_eq!(problem, "needs the variable `MISSING`, which is not set");
        bench.pool.close().await;
    });
}

#[test]
fn a_server_nobody_uses_is_stopped_and_started_again() {
    let bench = Bench::new();
    block_on(async {
        let server = kiwi_mcp::Server { idle_timeout: Duration::from_millis(300), ..chaos("idle", "ok") };
        let connection = bench.pool.connect(&server).await.unwrap();
        let generation = connection.generation();
        // A call that takes longer than that is a use.
        call(&connection, "wait", json!({"seconds": 0.8})).await.unwrap();
        let first = pid(&bench, &server).await;
        wait_until("it is stopped", || bench.pool.states()[0].kind == StateKind::Idle).await;
        assert!(!std::path::Path::new(&format!("/proc/{first}/stat")).exists());
        let (problem, _) = unavailable(call(&connection, "echo", json!({})).await.unwrap_err());
        assert_eq!(problem, "was stopped");
        let again = bench.pool.connect(&server).await.unwrap();
        assert_ne!(again.generation(), generation, "the caller knows that it has to list again");
        assert_eq!(call(&again, "echo", json!({"text": "x"})).await.unwrap().text(), "x");
        bench.pool.close().await;
    });
}

#[test]
fn what_a_server_says_goes_to_the_call_it_belongs_to() {
    let bench = Bench::new();
    block_on(async {
        let connection = bench.pool.connect(&chaos("talks", "ok")).await.unwrap();
        let (one, two) = (Arc::new(Witness::default()), Arc::new(Witness::default()));
        let (first, second) = tokio::join!(
            call_as(&connection, "progress", json!({}), one.clone()),
            call_as(&connection, "wait", json!({"seconds": 0.3}), two.clone()),
        );
        assert_eq!((first.unwrap().text(), second.unwrap().text()), ("progressed".into(), "waited".into()));
        let expected: Vec<Value> = (0..3).map(|number| json!({"progress": number, "total": 3})).collect();
        assert_eq!(*one.progress.lock().unwrap(), expected);
        assert!(two.progress.lock().unwrap().is_empty());
        // Nobody knows whose line of the log it is, so all hear it.
        let line = vec![json!({"level": "info", "data": "half way"})];
        assert_eq!(
            (one.logs.lock().unwrap().clone(), two.logs.lock().unwrap().clone()),
            (line.clone(), line)
        );
        bench.pool.close().await;
    });
}

#[test]
fn a_question_goes_to_the_only_call_in_flight() {
    let bench = Bench::new();
    block_on(async {
        let connection = bench.pool.connect(&chaos("asks", "ok")).await.unwrap();
        let person = Witness::answering(
            Capability::Elicitation,
            json!({"action": "accept", "content": {"name": "Ada"}}),
        );
        let answer = call_as(&connection, "ask", json!({}), person.clone()).await.unwrap();
        assert_eq!(answer.text(), r#"{"action": "accept", "content": {"name": "Ada"}}"#);
        assert_eq!(person.asked.lock().unwrap()[0].params["message"], "your name?");
        let answer = call(&connection, "ask", json!({})).await.unwrap();
        assert!(answer.text().contains("-32601"), "{}", answer.text());
        let answer =
            call_as(&connection, "ask", json!({"method": "nobody/knows"}), person.clone()).await.unwrap();
        assert!(answer.text().contains("-32601"), "{}", answer.text());
        // Who never said that it could answer such a thing is not asked.
        let answer =
            call_as(&connection, "ask", json!({"method": "roots/list"}), person.clone()).await.unwrap();
        assert!(answer.text().contains("nobody here can answer `roots/list`"), "{}", answer.text());
        // With two in flight nobody knows whose question it is.
        let (_, answer) = tokio::join!(
            call_as(&connection, "wait", json!({"seconds": 0.5}), person.clone()),
            call_as(&connection, "ask", json!({}), person.clone()),
        );
        assert!(answer.unwrap().text().contains("-32602"));
        assert_eq!(person.asked.lock().unwrap().len(), 1);
        // The time a person takes is not the server's.
        let slow = Arc::new(Witness {
            answer: Some((Capability::Elicitation, json!({"action": "decline"}))),
            pause: Duration::from_millis(900),
            ..Witness::default()
        });
        let server = kiwi_mcp::Server { timeout: Duration::from_millis(500), ..chaos("asks", "ok") };
        let connection = bench.pool.connect(&server).await.unwrap();
        let answer = call_as(&connection, "ask", json!({}), slow).await.unwrap();
        assert!(answer.text().contains("decline"), "{}", answer.text());
        bench.pool.close().await;
    });
}

#[test]
fn a_cancelled_call_returns_at_once_and_the_server_is_told() {
    let bench = Bench::new();
    block_on(async {
        let connection = bench.pool.connect(&chaos("cancels", "ok")).await.unwrap();
        let params = json!({"name": "hang", "arguments": {}});
        let begun = Instant::now();
        let cancel = tokio::time::sleep(Duration::from_millis(100));
        let cancelled = connection
            .request("tools/call", params.clone(), Arc::new(kiwi_mcp::Silent), cancel)
            .await
            .unwrap_err();
        assert_eq!(cancelled, McpError::Cancelled);
        // A caller that is gone is as good as one that says so.
        let gone =
            connection.request("tools/call", params, Arc::new(kiwi_mcp::Silent), std::future::pending());
        assert!(tokio::time::timeout(Duration::from_millis(100), gone).await.is_err());
        let late = kiwi_mcp::Server { timeout: Duration::from_millis(200), ..chaos("cancels", "ok") };
        let connection = bench.pool.connect(&late).await.unwrap();
        let error = call(&connection, "hang", json!({})).await.unwrap_err();
        assert_eq!(error, McpError::Timeout { server: "cancels".into(), seconds: 1 });
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
        let deadline = Instant::now() + Duration::from_secs(5);
        loop {
            let told = call(&connection, "cancelled", json!({})).await.unwrap().text();
            let told: Vec<Value> = serde_json::from_str(&told).unwrap();
            if told.len() == 3 {
                break;
            }
            assert!(Instant::now() < deadline, "the server was told {told:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        bench.pool.close().await;
    });
}

#[test]
fn a_changed_list_is_told_once_for_many_news() {
    let bench = Bench::new();
    block_on(async {
        let connection = bench.pool.connect(&chaos("changes", "ok")).await.unwrap();
        let before = connection.list().await.unwrap().tools.len();
        call(&connection, "change", json!({})).await.unwrap();
        wait_until("the change is told", || bench.changes() == 1).await;
        assert_eq!(connection.list().await.unwrap().tools.len(), before + 1);
        call(&connection, "flood", json!({"count": 2000})).await.unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!((2..60).contains(&bench.changes()), "{}", bench.changes());
        bench.pool.close().await;
    });
}

#[test]
fn a_server_can_live_behind_walls() {
    let marker = marker();
    let bench = Bench::with(|around| {
        around.confinement.read = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")];
    });
    block_on(async {
        for isolation in [Isolation::Sandboxed, Isolation::Restricted] {
            let mut server = chaos("walled", "ok");
            server.isolation = isolation;
            if let Reach::Stdio { args, .. } = &mut server.reach {
                args.push(marker.clone());
            }
            assert_eq!(bench.call(&server, "echo", json!({"text": "in"})).await.unwrap().text(), "in");
            assert!(!marked(&marker).is_empty());
        }
        bench.pool.close().await;
        assert_eq!(marked(&marker), Vec::<i32>::new());
    });
}
