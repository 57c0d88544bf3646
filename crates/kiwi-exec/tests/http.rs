//! Requests against a small server on this machine.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
#![expect(clippy::disallowed_types, reason = "a server has to read from somewhere")]

mod support;

use kiwi_exec::{Body, ExecError, HttpClient, HttpRequest, HttpResponse, Payload, Redirects};
use kiwi_model::{ErrorKind, Explain};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use support::block_on;

/// A server that gives each path its answer and tells what it was asked.
struct Server {
    address: String,
    asked: Receiver<String>,
}

impl Server {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (tell, asked) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let tell = tell.clone();
                std::thread::spawn(move || tell.send(answer(stream)));
            }
        });
        Self { address, asked }
    }

    fn request(&self, method: &str, path: &str) -> HttpRequest {
        HttpRequest {
            method: method.into(),
            url: format!("{}{path}", self.address),
            headers: Vec::new(),
            query: Vec::new(),
            body: Body::None,
            timeout: Duration::from_secs(10),
            max_response: 1 << 20,
            redirects: Redirects::Follow(5),
        }
    }
}

fn answer(mut stream: TcpStream) -> String {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).unwrap(), 0, "the client left early");
    }
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let path = head.split(' ').nth(1).unwrap().split('?').next().unwrap().to_owned();
    let plain = |status: &str, headers: &str, body: &str| {
        format!(
            "HTTP/1.1 {status}\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let json = "content-type: application/json; charset=utf-8\r\n";
    let text = match path.as_str() {
        "/json" => plain("200 OK", json, r#"{"ok":true}"#),
        "/badjson" => plain("200 OK", json, "{"),
        "/missing" => {
            plain("404 Not Found", "content-type: application/problem+json\r\n", r#"{"why":"gone"}"#)
        }
        "/moved" => plain("302 Found", "location: /json\r\n", ""),
        "/again" => plain("307 Temporary Redirect", "location: /text\r\n", ""),
        "/round" => plain("301 Moved", "location: /round\r\n", ""),
        "/away" => plain("302 Found", "location: file:///etc/passwd\r\n", ""),
        "/slow" => {
            std::thread::sleep(Duration::from_secs(3));
            String::new()
        }
        "/drip" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            while stream.write_all(&[b'x'; 1000]).is_ok() {}
            String::new()
        }
        "/cut" => "HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nabc".into(),
        _ => plain("200 OK", "content-type: text/plain\r\nx-a: 1\r\nx-a: 2\r\n", "hello"),
    };
    let _ = stream.write_all(text.as_bytes());
    head + &String::from_utf8(body).unwrap()
}

fn send(request: HttpRequest) -> Result<HttpResponse, ExecError> {
    block_on(HttpClient::new().send(request))
}

#[test]
fn a_request_carries_what_it_was_given() {
    let server = Server::new();
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
}

#[test]
fn bodies_are_sent_in_their_form() {
    let server = Server::new();
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
    let server = Server::new();
    assert_eq!(send(server.request("GET", "/json")).unwrap().body, Payload::Json(json!({"ok": true})));
    assert_eq!(send(server.request("GET", "/badjson")).unwrap().body, Payload::Text("{".into()));
}

#[test]
fn a_status_other_than_success_is_a_failure_with_the_answer() {
    let server = Server::new();
    let error = send(server.request("GET", "/missing?token=secret")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ToolFailed);
    assert_eq!(error.to_string(), format!("`{}/missing` answered with status 404", server.address));
    let details = error.details();
    assert_eq!(
        (details.get("status"), details.get("body")),
        (Some(&json!(404)), Some(&json!({"why": "gone"})))
    );
}

#[test]
fn redirects_are_followed_as_far_as_allowed() {
    let server = Server::new();
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
    assert!(matches!(send(server.request("GET", "/away")), Err(ExecError::BadUrl { .. })));
}

#[test]
fn size_and_time_are_limited_while_the_answer_comes() {
    let server = Server::new();
    let error = send(server.request("GET", "/drip")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutputLimit, "{error}");
    let small = HttpRequest { max_response: 5, ..server.request("GET", "/text") };
    assert!(send(small.clone()).is_ok());
    let error = send(HttpRequest { max_response: 4, ..small }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutputLimit, "{error}");
    let started = Instant::now();
    let error = send(HttpRequest { timeout: Duration::from_millis(200), ..server.request("GET", "/slow") })
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert!(started.elapsed() < Duration::from_secs(2));
}

#[test]
fn nobody_there_and_half_an_answer_are_told_apart_from_success() {
    let server = Server::new();
    let error = send(server.request("GET", "/cut")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UpstreamUnavailable, "{error}");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = HttpRequest { url: format!("http://{closed}/?token=secret"), ..server.request("GET", "/") };
    let error = send(nobody).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UpstreamUnavailable, "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
    // A plain server is not a secure one.
    let wrong = HttpRequest { url: server.address.replace("http:", "https:"), ..server.request("GET", "/") };
    match send(wrong).unwrap_err() {
        // The server thread sees a handshake where it expects a line.
        ExecError::Unreachable { .. } => {}
        other => panic!("{other}"),
    }
}

#[test]
fn what_is_not_a_request_is_refused() {
    let server = Server::new();
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
