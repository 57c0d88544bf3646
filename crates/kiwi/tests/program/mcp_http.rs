//! The endpoint over HTTP, and those who mean it no good.

use crate::support::mcp::{MODERN, OLD, Served, meta, read, trusted};
use crate::support::{TestEnvironment, rounds};
use serde_json::{Value, json};
use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

fn project() -> TestEnvironment {
    let env = TestEnvironment::new();
    env.write("tools/hello.sh", "# kiwi: version: \"1.0.0\"\n# kiwi: description: Says hello\necho hello\n");
    let slow = "# kiwi: version: \"1.0.0\"\n# kiwi: permissions: {filesystem_write: [\"marks/**\"]}\ntouch marks/started\nsleep 2\necho slept\n";
    env.write("tools/slow.sh", slow);
    env.write("tools/endless.sh", slow.replace("sleep 2", "sleep 600"));
    std::fs::create_dir(env.project().join("marks")).unwrap();
    trusted(&env);
    env
}

fn execute(id: &str) -> Value {
    json!({"name": "execute", "arguments": {"item_type": "tool", "item_id": id}})
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn both_revisions_are_served_on_one_endpoint() {
    let env = project();
    let served = Served::start(&env, &[]);
    let ran = served.modern("/mcp", "tools/call", execute("hello"), &[]);
    assert_eq!(ran.status, 200, "{ran:?}");
    assert_eq!(ran.message()["result"]["structuredContent"]["result"], "hello\n");
    let first = ran.message()["result"]["structuredContent"]["session"].clone();
    let again = served.modern("/mcp", "tools/call", execute("hello"), &[]).message();
    assert_eq!(again["result"]["structuredContent"]["session"], first, "one client has one session");
    let direct = served.modern("/mcp/direct", "tools/call", json!({"name": "hello", "arguments": {}}), &[]);
    assert_eq!(direct.message()["result"]["content"][0]["text"], "hello\n");
    let discovered = served.modern("/mcp", "server/discover", json!({}), &[]).message();
    let versions = discovered["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!(MODERN)) && versions.contains(&json!(OLD)), "{discovered}");

    let post =
        |headers: &[(&str, &str)], body: Value| served.send("POST", "/mcp", headers, &body.to_string());
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
        {"protocolVersion": OLD, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}});
    let begun = post(&[], hello);
    let session = begun.header("mcp-session-id").unwrap().to_owned();
    let own = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", OLD)];
    assert_eq!(post(&own, json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).status, 202);
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": execute("hello")});
    let ran = post(&own, call.clone());
    assert_eq!(ran.message()["result"]["structuredContent"]["result"], "hello\n", "{ran:?}");
    assert_ne!(ran.message()["result"]["structuredContent"]["session"], first);
    assert_eq!(post(&[("mcp-session-id", "nope"), ("mcp-protocol-version", OLD)], call.clone()).status, 404);
    assert_eq!(post(&[("mcp-protocol-version", OLD)], call).status, 400);
    assert_eq!(served.stop(), Some(0));
}

#[test]
fn only_its_own_names_and_pages_are_answered() {
    let env = project();
    let served = Served::start(&env, &["--allow-host", "kiwi.test", "--allow-origin", "https://app.test"]);
    let own = format!("http://localhost:{}", served.port);
    let ask = |headers: &[(&str, &str)]| served.modern("/mcp", "tools/list", json!({}), headers).status;
    assert_eq!(ask(&[("host", "kiwi.test")]), 200);
    assert_eq!(ask(&[("origin", "https://app.test")]), 200);
    assert_eq!(ask(&[("origin", &own)]), 200);
    for (name, value) in [
        ("host", "evil.test"),
        ("host", "localhost.evil.test"),
        ("host", "127.0.0.1:1"),
        ("origin", "http://evil.test"),
        ("origin", "null"),
        ("origin", "http://localhost:1"),
        ("origin", ""),
    ] {
        assert_eq!(ask(&[(name, value)]), 403, "{name}: {value}");
    }
    let twice = format!(
        "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{0}\r\nhost: evil.test\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        served.port
    );
    assert!([400, 403].contains(&served.raw(&twice).status));
    assert_eq!(served.raw("GET /mcp HTTP/1.1\r\nconnection: close\r\n\r\n").status, 400);
    let elsewhere = served.send("GET", "/.well-known/oauth-protected-resource", &[("host", "evil.test")], "");
    assert_eq!(elsewhere.status, 403);
    assert_eq!(served.stop(), Some(0));
}

#[test]
fn a_token_is_asked_for() {
    let env = project();
    let file = env.write_user("token", "s3cret-token\n");
    let served = Served::start(&env, &["--token-file", file.to_str().unwrap()]);
    let ask = |headers: &[(&str, &str)]| served.modern("/mcp", "tools/list", json!({}), headers);
    assert_eq!(ask(&[("authorization", "Bearer s3cret-token")]).status, 200);
    assert_eq!(ask(&[("authorization", "bearer s3cret-token")]).status, 200);
    for wrong in
        ["Bearer s3cret-toke", "Bearer s3cret-tokenx", "Bearer ", "Basic s3cret-token", "s3cret-token"]
    {
        let refused = ask(&[("authorization", wrong)]);
        assert_eq!(refused.status, 401, "{wrong}");
    }
    let refused = ask(&[]);
    assert_eq!(refused.status, 401);
    let challenge = refused.header("www-authenticate").unwrap();
    let expected = format!(
        "resource_metadata=\"http://127.0.0.1:{}/.well-known/oauth-protected-resource/mcp\"",
        served.port
    );
    assert!(challenge.starts_with("Bearer ") && challenge.contains(&expected), "{challenge}");
    for path in ["", "/mcp", "/mcp/direct"] {
        let told = served.send("GET", &format!("/.well-known/oauth-protected-resource{path}"), &[], "");
        assert_eq!(told.status, 200);
        assert!(told.message()["resource"].as_str().unwrap().contains("/mcp"), "{told:?}");
    }
    assert_eq!(served.send("GET", "/mcp", &[], "").status, 401);
    assert_eq!(served.send("DELETE", "/mcp/direct", &[], "").status, 401);
    assert_eq!(served.stop(), Some(0));
    let open = env.run(&["serve", "--host", "0.0.0.0", "--port", "0"]);
    assert_eq!(open.code, 2, "{}", open.stderr);
    assert!(open.stderr.contains("token"), "{}", open.stderr);
    let empty = env.write_user("empty", "\n");
    assert_eq!(env.run(&["serve", "--port", "0", "--token-file", empty.to_str().unwrap()]).code, 2);
}

#[test]
fn what_is_too_long_too_slow_or_contradicts_itself_is_refused() {
    let env = project();
    let served = Served::start(&env, &[]);
    let long = format!("{{\"x\": \"{}\"}}", "x".repeat(5 << 20));
    let mut stream = served.connect();
    // The answer may come, and the door close, before all of it was sent.
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\nconnection: close\r\n";
    let _ = stream.write_all(format!("{head}content-length: {}\r\n\r\n", long.len()).as_bytes());
    assert_eq!(read(&mut stream).status, 413);
    let mut stream = served.connect();
    let _ = stream.write_all(format!("{head}transfer-encoding: chunked\r\n\r\n").as_bytes());
    let chunk = "x".repeat(1 << 20);
    for _ in 0..5 {
        let _ = write!(stream, "{:x}\r\n{chunk}\r\n", chunk.len());
    }
    assert_eq!(read(&mut stream).status, 413);

    let begun = Instant::now();
    let mut slow = served.connect();
    slow.write_all(format!("{head}content-length: 100\r\n\r\n{{").as_bytes()).unwrap();
    let mut slower = served.connect();
    slower.write_all(b"POST /mcp HTTP/1.1\r\nhost: loc").unwrap();
    assert_eq!(read(&mut slow).status, 408);
    assert!([0, 408].contains(&read(&mut slower).status));
    assert!(begun.elapsed() < Duration::from_secs(40));

    for (name, value) in [("mcp-method", "tools/list"), ("mcp-name", "load"), ("mcp-protocol-version", OLD)] {
        let refused = served.modern("/mcp", "tools/call", execute("hello"), &[(name, value)]);
        assert_eq!(refused.status, 400, "{name}: {refused:?}");
    }
    let unknown = [("mcp-protocol-version", "1999-01-01")];
    assert_eq!(served.modern("/mcp", "tools/call", execute("hello"), &unknown).status, 400);
    let mut params = execute("hello");
    params["_meta"] = json!({});
    assert_eq!(served.modern("/mcp", "tools/call", params, &[]).status, 400);
    for body in ["", "{", "[]", "null", "{\"jsonrpc\":\"1.0\"}"] {
        let refused = served.send("POST", "/mcp", &[("mcp-protocol-version", MODERN)], body);
        assert!((400..500).contains(&refused.status), "{body}: {refused:?}");
    }
    assert_eq!(served.send("POST", "/mcp", &[("content-type", "text/plain")], "{}").status, 415);
    assert_eq!(served.send("GET", "/nowhere", &[], "").status, 404);
    let ran = served.modern("/mcp", "tools/call", execute("hello"), &[]);
    assert_eq!(ran.message()["result"]["structuredContent"]["result"], "hello\n", "{ran:?}");
    assert_eq!(served.stop(), Some(0));
}

#[test]
fn idle_connections_keep_nobody_out() {
    let env = project();
    let served = Served::start(&env, &[]);
    // More than it keeps; each is one that says nothing.
    let mut idle = Vec::new();
    for _ in 0..rounds(10_000).max(3_000) {
        if let Ok(stream) = TcpStream::connect(("127.0.0.1", served.port)) {
            idle.push(stream);
        } else {
            // No more descriptors here: the oldest make room.
            idle.drain(..idle.len() / 2);
        }
    }
    idle.truncate(500);
    for _ in 0..3 {
        let ran = served.modern("/mcp", "tools/call", execute("hello"), &[]);
        assert_eq!(ran.message()["result"]["structuredContent"]["result"], "hello\n", "{ran:?}");
    }
    // Who has no session to hold on to is counted all the same.
    let again = served.modern("/mcp", "tools/call", execute("hello"), &[]).message();
    assert_eq!(again["result"]["structuredContent"]["kind"], "loop_detected", "{again}");
    assert_eq!(served.stop(), Some(0));
}

#[test]
fn going_away_ends_the_call() {
    let env = project();
    let served = Served::start(&env, &[]);
    let mut params = execute("endless");
    params["_meta"] = meta(json!({}));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let mut stream = served.connect();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\nmcp-protocol-version: {MODERN}\r\nmcp-method: tools/call\r\nmcp-name: execute\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    wait_for("it does not start", || env.project().join("marks/started").exists());
    drop(stream);
    let project = env.project().display().to_string();
    wait_for("it does not end", || {
        !crate::support::processes(&project).iter().any(|it| it.contains("endless"))
    });
    assert_eq!(served.stop(), Some(0));
}

#[test]
fn asked_to_end_it_lets_calls_finish_and_ends_the_rest() {
    let env = project();
    for (tool, ends) in [("slow", true), ("endless", false)] {
        let _ = std::fs::remove_file(env.project().join("marks/started"));
        let served = Served::start(&env, &["--drain", "8"]);
        let port = served.port;
        let running = std::thread::scope(|scope| {
            let call = scope.spawn(|| served.modern("/mcp", "tools/call", execute(tool), &[]));
            wait_for("it does not start", || env.project().join("marks/started").exists());
            let pid = rustix::process::Pid::from_child(&served.child);
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
            std::thread::sleep(Duration::from_millis(300));
            assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "nobody new is let in");
            call.join().unwrap()
        });
        let mut served = served;
        assert_eq!(served.child.wait().unwrap().code(), Some(0));
        if ends {
            assert_eq!(running.message()["result"]["structuredContent"]["result"], "slept\n", "{running:?}");
        }
        let project = env.project().display().to_string();
        wait_for("it is left behind", || {
            !crate::support::processes(&project).iter().any(|it| it.contains(tool))
        });
    }
}

#[test]
fn what_is_no_message_is_refused_as_the_protocol_has_it() {
    let env = project();
    let served = Served::start(&env, &[]);
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{}1{}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    for (body, code) in [
        ("{bad", -32700),
        ("", -32700),
        ("stray text", -32700),
        (deep.as_str(), -32600),
        (r#"{"some":"thing"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (r#"{"id":1.5,"result":{}}"#, -32600),
    ] {
        for path in ["/mcp", "/mcp/direct"] {
            let refused = served.send("POST", path, &[], body);
            assert_eq!(refused.status, 400, "{body}: {refused:?}");
            assert_eq!(refused.header("content-type"), Some("application/json"));
            let told = refused.message();
            assert_eq!(
                (&told["jsonrpc"], told.get("id")),
                (&json!("2.0"), Some(&Value::Null)),
                "{body}: {told}"
            );
            assert_eq!(told["error"]["code"], code, "{body}: {told}");
        }
    }
    let other = served.send("POST", "/mcp", &[("content-type", "text/plain")], "{}");
    assert_eq!(other.status, 415, "{other:?}");
    let wrong = served.modern("/mcp", "tools/call", json!({"name": "execute", "arguments": []}), &[]);
    assert_eq!((wrong.status, &wrong.message()["error"]["code"]), (200, &json!(-32602)), "{wrong:?}");
    let body = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":[]}"#;
    let told = served.send("POST", "/mcp", &[], body).message();
    assert_eq!((&told["id"], &told["error"]["code"]), (&json!(7), &json!(-32602)), "{told}");
    assert_eq!(served.stop(), Some(0));
}
