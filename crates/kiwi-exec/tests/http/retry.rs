//! Making a request again, where that helps and does no harm.

use kiwi_exec::{ExecError, HttpClient, HttpRequest};
use kiwi_model::{ErrorKind, Explain};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::send;
use crate::server::{Server, reply, request};
use crate::support::block_on;

/// Fails so many times, then does not.
fn failing(times: usize, status: &'static str, headers: &'static str) -> Server {
    Server::new(
        move |_, nth| {
            if nth < times { reply(status, headers, "later") } else { reply("200 OK", "", "now") }
        },
    )
}

#[test]
fn what_fails_in_passing_is_asked_again() {
    for status in ["429 Slow", "502 Bad", "503 Busy", "504 Late"] {
        let server = failing(2, status, "");
        send(HttpRequest { retries: 2, ..server.request("GET", "/") }).unwrap();
        assert_eq!(server.seen().len(), 3, "{status}");
    }
    let server = failing(3, "503 Busy", "");
    let error = send(HttpRequest { retries: 2, ..server.request("GET", "/") }).unwrap_err();
    assert!(matches!(error, ExecError::HttpStatus { status: 503, .. }), "{error}");
    assert_eq!(server.seen().len(), 3);
}

#[test]
fn what_would_fail_again_is_not() {
    for (retries, status) in [(0, "503 Busy"), (3, "500 Broken"), (3, "404 None"), (3, "401 Who")] {
        let server = failing(1, status, "");
        send(HttpRequest { retries, ..server.request("GET", "/") }).unwrap_err();
        assert_eq!(server.seen().len(), 1, "{status}");
    }
}

#[test]
fn only_methods_that_may_be_repeated_are() {
    for (method, expected) in
        [("GET", 2), ("HEAD", 2), ("OPTIONS", 2), ("PUT", 2), ("DELETE", 2), ("POST", 1), ("PATCH", 1)]
    {
        let server = failing(1, "503 Busy", "");
        let outcome = send(HttpRequest { retries: 1, ..server.request(method, "/") });
        assert_eq!((server.seen().len(), outcome.is_ok()), (expected, expected == 2), "{method}");
    }
}

#[test]
fn the_server_says_how_long_to_wait() {
    for headers in [
        "retry-after: 1\r\n",
        "date: Sun, 06 Nov 1994 08:49:37 GMT\r\nretry-after: Sun, 06 Nov 1994 08:49:38 GMT\r\n",
    ] {
        let server = failing(1, "429 Slow", headers);
        let begun = Instant::now();
        send(HttpRequest { retries: 1, ..server.request("GET", "/") }).unwrap();
        let took = begun.elapsed();
        assert!(took >= Duration::from_secs(1) && took < Duration::from_secs(3), "{headers}: {took:?}");
    }
}

#[test]
fn nobody_waits_for_what_comes_too_late() {
    let server = failing(1, "503 Busy", "retry-after: 3600\r\n");
    let begun = Instant::now();
    let error = send(HttpRequest { retries: 5, ..server.request("GET", "/") }).unwrap_err();
    assert!(matches!(error, ExecError::HttpStatus { status: 503, .. }), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(2));
    // The time is for all tries together.
    let server = failing(100, "503 Busy", "");
    let begun = Instant::now();
    let timeout = Duration::from_millis(700);
    send(HttpRequest { retries: 100, timeout, ..server.request("GET", "/") }).unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(2));
    assert!(server.seen().len() >= 2);
}

#[test]
fn a_server_that_comes_back_is_found() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(250));
        let listener = TcpListener::bind(address).unwrap();
        let (desk, _asked) = crate::server::Desk::new(|_, _| reply("200 OK", "", "back"));
        desk.serve(listener.accept().unwrap().0);
    });
    send(HttpRequest { retries: 5, ..request("GET", &format!("http://{address}/")) }).unwrap();
}

#[test]
fn every_try_passes_the_guard() {
    let server = failing(1, "503 Busy", "");
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    // First an address that is listed, then one that is not.
    let client = HttpClient::new().looking_up(move |_| {
        let first = counted.fetch_add(1, Ordering::SeqCst) == 0;
        Ok(vec![if first { [127, 0, 0, 1].into() } else { [127, 0, 0, 2].into() }])
    });
    let mut asked = request("GET", &format!("http://changes.example:{}/", server.port));
    asked.reach.allow_hosts = Some(crate::server::listing(&["127.0.0.1"]));
    let error = block_on(client.send(HttpRequest { retries: 3, ..asked })).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    // A refusal is not asked again.
    assert_eq!((server.seen().len(), count.load(Ordering::SeqCst)), (1, 2));
}
