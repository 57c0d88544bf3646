//! Servers behind HTTP: sessions, streams, bounds, and what is never done twice.

use crate::support::web::{events, initialized, result, start, status};
use crate::support::{Bench, Witness, block_on, call, call_as, endpoint, unavailable, web};
use axum::http::Method;
use kiwi_mcp::{Capability, McpError, Reach};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What an old endpoint answers to everything but a call.
fn usual(asked: &web::Asked, session: &str) -> Option<axum::http::Response<axum::body::Body>> {
    Some(match (asked.method.clone(), asked.what()) {
        (Method::GET, _) => status(405),
        (Method::DELETE, _) => status(200),
        (_, "server/discover") => status(400),
        (_, "initialize") => initialized(asked, session),
        (_, what) if what.starts_with("notifications/") => status(202),
        (_, "tools/list") => {
            let tool = json!({"name": "echo", "inputSchema": {"type": "object", "x": 1}, "annotations": {"x-own": 1}});
            web::json(200, &result(asked, &json!({"tools": [tool]})))
        }
        _ => return None,
    })
}

#[test]
fn a_forgotten_session_is_begun_again_once() {
    let bench = Bench::new();
    block_on(async {
        let (sessions, forgotten, done) =
            (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(1)), Arc::new(AtomicUsize::new(0)));
        let (begun, old, effects) = (Arc::clone(&sessions), Arc::clone(&forgotten), Arc::clone(&done));
        let url = start(move |asked| {
            let (sessions, forgotten, done) = (Arc::clone(&begun), Arc::clone(&old), Arc::clone(&effects));
            async move {
                if asked.what() == "initialize" {
                    sessions.fetch_add(1, Ordering::SeqCst);
                }
                if let Some(answer) = usual(&asked, &format!("s{}", sessions.load(Ordering::SeqCst))) {
                    return answer;
                }
                let known: usize = asked.header("mcp-session-id").trim_start_matches('s').parse().unwrap();
                if known <= forgotten.load(Ordering::SeqCst) {
                    return status(404);
                }
                done.fetch_add(1, Ordering::SeqCst);
                web::json(
                    200,
                    &result(&asked, &json!({"content": [{"type": "text", "text": "done", "x-own": 1}]})),
                )
            }
        })
        .await;
        let server = endpoint("web", &url);
        let connection = bench.pool.connect(&server).await.unwrap();
        let listing = connection.list().await.unwrap();
        assert_eq!(
            json!(listing.tools[0]),
            json!({"name": "echo", "inputSchema": {"type": "object", "x": 1}, "annotations": {"x-own": 1}})
        );
        let generation = connection.generation();
        let answer = call(&connection, "echo", json!({})).await.unwrap();
        assert_eq!(answer.0["content"][0]["x-own"], 1, "nothing is lost");
        assert_ne!(connection.generation(), generation);
        assert_eq!(
            (sessions.load(Ordering::SeqCst), done.load(Ordering::SeqCst), bench.changes()),
            (2, 1, 1)
        );
        // An endpoint that knows no session at all is not asked for ever.
        forgotten.store(usize::MAX, Ordering::SeqCst);
        let (problem, _) = unavailable(call(&connection, "echo", json!({})).await.unwrap_err());
        assert_eq!(problem, "forgets its sessions as soon as they begin");
        assert_eq!((sessions.load(Ordering::SeqCst), done.load(Ordering::SeqCst)), (3, 1));
        bench.pool.close().await;
    });
}

/// The session is forgotten while another call is still being answered: that one gets its answer.
#[test]
fn a_new_session_takes_nothing_from_calls_in_flight() {
    let bench = Bench::new();
    block_on(async {
        let sessions = Arc::new(AtomicUsize::new(0));
        let begun = Arc::clone(&sessions);
        let url = start(move |asked| {
            let sessions = Arc::clone(&begun);
            async move {
                if asked.what() == "initialize" {
                    sessions.fetch_add(1, Ordering::SeqCst);
                }
                if let Some(answer) = usual(&asked, &format!("s{}", sessions.load(Ordering::SeqCst))) {
                    return answer;
                }
                let is_long = asked.message["params"]["name"] == "long";
                if is_long {
                    tokio::time::sleep(Duration::from_millis(400)).await;
                } else if asked.header("mcp-session-id") == "s1" {
                    return status(404);
                }
                web::json(200, &result(&asked, &json!({"content": [{"type": "text", "text": "done"}]})))
            }
        })
        .await;
        let connection = bench.pool.connect(&endpoint("web", &url)).await.unwrap();
        let (long, short) = tokio::join!(call(&connection, "long", json!({})), async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            call(&connection, "short", json!({})).await
        });
        assert_eq!((long.unwrap().text(), short.unwrap().text()), ("done".into(), "done".into()));
        assert_eq!(sessions.load(Ordering::SeqCst), 2);
        bench.pool.close().await;
    });
}

#[test]
fn what_may_have_had_an_effect_is_not_done_again() {
    let bench = Bench::new();
    block_on(async {
        let calls = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&calls);
        let url = start(move |asked| {
            let answer = usual(&asked, "s");
            let number = if answer.is_none() { counter.fetch_add(1, Ordering::SeqCst) } else { 0 };
            async move { answer.unwrap_or_else(|| if number == 0 { status(503) } else { events(&[]) }) }
        })
        .await;
        let server = kiwi_mcp::Server { timeout: Duration::from_millis(700), ..endpoint("web", &url) };
        let connection = bench.pool.connect(&server).await.unwrap();
        let (problem, _) = unavailable(call(&connection, "echo", json!({})).await.unwrap_err());
        assert_eq!(problem, "answered HTTP 503");
        // A stream that ends without an answer.
        call(&connection, "echo", json!({})).await.unwrap_err();
        assert_eq!(calls.load(Ordering::SeqCst), 2);
        bench.pool.close().await;
    });
}

#[test]
fn a_stream_brings_progress_questions_and_then_the_answer() {
    let bench = Bench::new();
    block_on(async {
        let replies = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&replies);
        let url = start(move |asked| {
            let replies = Arc::clone(&heard);
            async move {
                if let Some(answer) = usual(&asked, "s") {
                    return answer;
                }
                if asked.what().is_empty() {
                    replies.lock().unwrap().push(asked.message);
                    return status(202);
                }
                let token = &asked.message["params"]["_meta"]["progressToken"];
                let who = asked.message["params"]["arguments"]["who"].clone();
                events(&[
                    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 1}}),
                    json!({"jsonrpc": "2.0", "id": who, "method": "elicitation/create", "params": {"message": who}}),
                    json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}),
                    result(&asked, &json!({"content": [{"type": "text", "text": who, "x-own": 1}]})),
                ])
            }
        })
        .await;
        let connection = bench.pool.connect(&endpoint("web", &url)).await.unwrap();
        let people =
            ["a", "b"].map(|action| Witness::answering(Capability::Elicitation, json!({"action": action})));
        // Both in flight at once: each stream says to which call a question belongs.
        let (a, b) = tokio::join!(
            call_as(&connection, "echo", json!({"who": "a"}), people[0].clone()),
            call_as(&connection, "echo", json!({"who": "b"}), people[1].clone()),
        );
        let (a, b) = (a.unwrap(), b.unwrap());
        assert_eq!((a.text(), b.text(), &a.0["content"][0]["x-own"]), ("a".into(), "b".into(), &json!(1)));
        for (person, who) in people.iter().zip(["a", "b"]) {
            assert_eq!(*person.progress.lock().unwrap(), [json!({"progress": 1})]);
            // The answer may come before the question is seen; whoever saw one saw their own.
            assert!(person.asked.lock().unwrap().iter().all(|asked| asked.params["message"] == who));
        }
        crate::support::wait_until("both questions were answered", || replies.lock().unwrap().len() == 2)
            .await;
        crate::support::wait_until("the change is told", || bench.changes() >= 1).await;
        bench.pool.close().await;
    });
}

#[test]
fn an_endpoint_that_goes_away_rests_like_a_process_that_dies() {
    let bench = Bench::new();
    block_on(async {
        let (url, end) = web::start_for_a_while(|asked| async move {
            let done = || web::json(200, &result(&asked, &json!({"content": []})));
            let mut answer = usual(&asked, "s").unwrap_or_else(done);
            answer.headers_mut().insert("connection", "close".parse().unwrap());
            answer
        })
        .await;
        let server = endpoint("web", &url);
        bench.call(&server, "echo", json!({})).await.unwrap();
        end.abort();
        for words in ["cannot be reached", "cannot be reached", "failure 1 in a row"] {
            let (problem, _) = unavailable(bench.call(&server, "echo", json!({})).await.unwrap_err());
            assert!(problem.contains(words), "{problem}");
        }
        bench.pool.close().await;
    });
}

#[test]
fn headers_are_looked_up_and_never_those_of_the_protocol() {
    let bench = Bench::new();
    block_on(async {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let keys = Arc::clone(&seen);
        let url = start(move |asked| {
            keys.lock().unwrap().push(asked.header("x-key").to_owned());
            async move { usual(&asked, "s").unwrap_or_else(|| status(500)) }
        })
        .await;
        let with = |name: &str, value: &str| {
            let mut server = endpoint("web", &url);
            if let Reach::Http { headers, .. } = &mut server.reach {
                headers.insert(name.into(), value.into());
            }
            server
        };
        bench.pool.connect(&with("X-Key", "k-${SECRET}")).await.unwrap().list().await.unwrap();
        assert!(seen.lock().unwrap().iter().all(|key| key == "k-opensesame"));
        let (problem, _) = unavailable(bench.pool.connect(&with("Mcp-Session-Id", "x")).await.unwrap_err());
        assert_eq!(problem, "has a header `Mcp-Session-Id` that the protocol sets itself");
        bench.pool.close().await;
    });
}

#[test]
fn what_is_no_endpoint_says_so() {
    let bench = Bench::new();
    block_on(async {
        let url = start(|asked| async move {
            match asked.path.as_str() {
                "/closed" => status(401),
                "/moved" => {
                    let mut answer = status(307);
                    answer.headers_mut().insert("location", "http://127.0.0.2:1/".parse().unwrap());
                    answer
                }
                "/giant" => web::json(200, &json!("x".repeat(20 << 20))),
                _ => status(500),
            }
        })
        .await;
        let connect = async |name: &str| {
            let url =
                if name == "away" { "http://127.0.0.1:1/mcp".to_owned() } else { format!("{url}/{name}") };
            bench.pool.connect(&endpoint(name, &url)).await.unwrap_err()
        };
        assert!(matches!(connect("closed").await, McpError::Unauthorized { .. }));
        for (name, words) in [
            ("moved", "HTTP 307"),
            ("giant", "the answer is longer than 16 MiB"),
            ("broken", "answered HTTP 500"),
            ("away", "cannot be reached"),
        ] {
            let (problem, _) = unavailable(connect(name).await);
            assert!(problem.contains(words), "{name}: {problem}");
        }
        bench.pool.close().await;
    });
}
