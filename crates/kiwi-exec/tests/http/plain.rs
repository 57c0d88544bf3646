//! Requests, bodies, answers and limits.

use kiwi_exec::{Body, ExecError, HttpRequest, Payload, Redirects};
use kiwi_model::{ErrorKind, Explain};
use serde_json::json;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use crate::send;
use crate::server::{self, Server, redirect, reply};

fn server() -> Server {
    Server::new(|asked, _| {
        let path = asked.split(' ').nth(1).unwrap().split('?').next().unwrap();
        match path {
            "/json" => server::json("200 OK", r#"{"ok":true}"#),
            "/badjson" => server::json("200 OK", "{"),
            "/missing" => {
                reply("404 Not Found", "content-type: application/problem+json\r\n", r#"{"why":"gone"}"#)
            }
            "/moved" => redirect("/json"),
            "/again" => reply("307 Temporary Redirect", "location: /text\r\n", ""),
            "/round" => redirect("/round"),
            "/ping" => redirect("/pong"),
            "/pong" => redirect("/ping"),
            "/away" => redirect("file:///etc/passwd"),
            "/socket" => redirect("unix:/run/x.sock:/"),
            "/user" => redirect("http://user:secret@127.0.0.1/"),
            "/slow" => {
                std::thread::sleep(Duration::from_secs(3));
                String::new()
            }
            "/drip" => format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(2 << 20)),
            "/long" => reply("500 Oh", "", &"x".repeat(200_000)),
            "/cut" => "HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nabc".into(),
            _ => reply("200 OK", "content-type: text/plain\r\nx-a: 1\r\nx-a: 2\r\n", "hello"),
        }
    })
}

#[test]
fn a_request_carries_what_it_was_given() {
    let server = server();
    let mut request = server.request("get", "/text?a=1");
    request.query = vec![("b".into(), "x y&z".into())];
    request.headers = vec![("X-Key".into(), "k".into())];
    let answer = send(request).unwrap();
    assert_eq!((answer.status, answer.body), (200, Payload::Text("hello".into())));
    let values: Vec<_> =
        answer.headers.iter().filter(|(name, _)| name == "x-a").map(|(_, value)| value.as_str()).collect();
    assert_eq!(values, ["1", "2"]);
    let asked = server.asked.recv().unwrap();
    assert!(asked.starts_with("GET /text?a=1&b=x+y%26z HTTP/1.1\r\n"), "{asked}");
    assert!(asked.contains("x-key: k\r\n") && asked.contains("user-agent: kiwi/"), "{asked}");
    // What is asked for is what is counted and read: nothing comes packed.
    assert_eq!(server::header(&asked, "accept-encoding"), None);
}

#[test]
fn bodies_are_sent_in_their_form() {
    let server = server();
    for (body, kind, text) in [
        (Body::Json(json!({"a": 1})), "application/json", r#"{"a":1}"#),
        (Body::Text("plain".into()), "text/plain; charset=utf-8", "plain"),
        (
            Body::Form(vec![("a".into(), "1 2".into()), ("b".into(), "ü".into())]),
            "application/x-www-form-urlencoded",
            "a=1+2&b=%C3%BC",
        ),
    ] {
        let request = HttpRequest { body, ..server.request("POST", "/text") };
        send(request).unwrap();
        let asked = server.asked.recv().unwrap();
        assert!(
            asked.starts_with("POST ") && asked.contains(&format!("content-type: {kind}\r\n")),
            "{asked}"
        );
        assert!(asked.ends_with(&format!("\r\n\r\n{text}")), "{asked}");
    }
    let mut request = HttpRequest { body: Body::Json(json!(1)), ..server.request("PUT", "/text") };
    request.headers = vec![("Content-Type".into(), "application/vnd.x+json".into())];
    send(request).unwrap();
    assert!(server.asked.recv().unwrap().contains("content-type: application/vnd.x+json\r\n"));
}

#[test]
fn json_is_parsed_when_the_answer_says_it_is_json() {
    let server = server();
    assert_eq!(send(server.request("GET", "/json")).unwrap().body, Payload::Json(json!({"ok": true})));
    assert_eq!(send(server.request("GET", "/badjson")).unwrap().body, Payload::Text("{".into()));
}

#[test]
fn a_status_other_than_success_is_a_failure_with_the_answer() {
    let server = server();
    let error = send(server.request("GET", "/missing?token=secret")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ToolFailed);
    assert_eq!(error.to_string(), format!("`{}` answered with status 404", server.url("/missing")));
    let details = error.details();
    assert_eq!(
        (details.get("status"), details.get("body")),
        (Some(&json!(404)), Some(&json!({"why": "gone"})))
    );
}

#[test]
fn redirects_are_followed_as_far_as_allowed() {
    let server = server();
    let post = |path| HttpRequest { body: Body::Text("b".into()), ..server.request("POST", path) };
    assert_eq!(send(post("/moved")).unwrap().body, Payload::Json(json!({"ok": true})));
    let asked: Vec<String> = server.asked.iter().take(2).collect();
    assert!(
        asked.iter().any(|asked| asked.starts_with("GET /json ") && asked.ends_with("\r\n\r\n")),
        "{asked:?}"
    );
    send(post("/again")).unwrap();
    let asked: Vec<String> = server.asked.iter().take(2).collect();
    assert!(
        asked.iter().any(|asked| asked.starts_with("POST /text ") && asked.ends_with("\r\n\r\nb")),
        "{asked:?}"
    );
    let kept = HttpRequest { redirects: Redirects::Keep, ..server.request("GET", "/moved") };
    assert!(matches!(send(kept), Err(ExecError::HttpStatus { status: 302, .. })));
    assert!(matches!(
        send(server.request("GET", "/round")),
        Err(ExecError::TooManyRedirects { limit: 5, .. })
    ));
    assert!(matches!(
        send(server.request("GET", "/ping")),
        Err(ExecError::TooManyRedirects { limit: 5, .. })
    ));
    for elsewhere in ["/away", "/socket", "/user"] {
        let error = send(server.request("GET", elsewhere)).unwrap_err();
        assert!(
            matches!(error, ExecError::BadUrl { .. }) && !error.to_string().contains("secret"),
            "{error}"
        );
    }
}

#[test]
fn size_and_time_are_limited_while_the_answer_comes() {
    let server = server();
    let error = send(server.request("GET", "/drip")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutputLimit, "{error}");
    let small = HttpRequest { max_response: 5, ..server.request("GET", "/text") };
    assert!(send(small.clone()).is_ok());
    let error = send(HttpRequest { max_response: 4, ..small }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutputLimit, "{error}");
    // A failure stays one, however much it has to say.
    for (max_response, expected) in [(1 << 20, 65_536), (10, 10)] {
        match send(HttpRequest { max_response, ..server.request("GET", "/long") }) {
            Err(ExecError::HttpStatus { status: 500, body, .. }) => {
                assert_eq!(body.as_str().unwrap().len(), expected);
            }
            other => panic!("{other:?}"),
        }
    }
    let started = Instant::now();
    let error = send(HttpRequest { timeout: Duration::from_millis(200), ..server.request("GET", "/slow") })
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert!(started.elapsed() < Duration::from_secs(2));
}

#[test]
fn nobody_there_and_half_an_answer_are_told_apart_from_success() {
    let server = server();
    let error = send(server.request("GET", "/cut")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UpstreamUnavailable, "{error}");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = HttpRequest { url: format!("http://{closed}/?token=secret"), ..server.request("GET", "/") };
    let error = send(nobody).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UpstreamUnavailable, "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
    // A plain server is not a secure one.
    let wrong = HttpRequest { url: server.url("/").replace("http:", "https:"), ..server.request("GET", "/") };
    match send(wrong).unwrap_err() {
        // The server thread sees a handshake where it expects a line.
        ExecError::Unreachable { .. } => {}
        other => panic!("{other}"),
    }
}

#[test]
fn what_is_not_a_request_is_refused() {
    let server = server();
    for url in ["", "example", "ftp://host/", "file:///etc/passwd", "http://", "http://[::1", "unix:/run/x"] {
        let error = send(HttpRequest { url: url.into(), ..server.request("GET", "/") }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidParams, "{url}: {error}");
    }
    let inline = HttpRequest { url: "http://user:secret@host/".into(), ..server.request("GET", "/") };
    let error = send(inline).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`http://host/` is not a usable address: it holds a user name or a password"
    );
    for method in ["", "GE T", "connect"] {
        assert!(
            matches!(send(server.request(method, "/")), Err(ExecError::BadRequest { what: "method", .. })),
            "{method}"
        );
    }
    for (name, value) in [("a b", "x"), ("", "x"), ("a", "x\r\nb: y"), ("a", "\0")] {
        let request =
            HttpRequest { headers: vec![(name.into(), value.into())], ..server.request("GET", "/") };
        assert!(matches!(send(request), Err(ExecError::BadRequest { what: "header", .. })), "{name} {value}");
    }
}
