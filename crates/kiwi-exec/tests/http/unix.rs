//! Services behind a socket of this machine.

use kiwi_exec::{Auth, ExecError, HttpRequest, Payload, Reach};
use kiwi_model::{ErrorKind, Explain, Secret};
use std::os::unix::net::UnixListener;

use crate::send;
use crate::server::{Desk, Server, header, listing, redirect, reply, request};

#[test]
fn a_socket_is_asked_like_a_host() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let outside = Server::saying("outside");
    let there = outside.url("/");
    let (desk, asked) = Desk::new(move |asked, _| match asked.split(' ').nth(1).unwrap() {
        "/moved" => redirect("/v1/info?a=1"),
        "/out" => redirect(&there),
        "/broken" => reply("500 Oh", "", "no"),
        _ => reply("200 OK", "", "info"),
    });
    std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| desk.serve(stream)));
    let url = |rest: &str| format!("unix:{}:{rest}", path.display());
    let mut plain = request("GET", &url("/v1/info?a=1"));
    plain.query = vec![("b".into(), "2".into())];
    plain.auth = Some(Auth::Bearer { token: Secret::new("hush hush") });
    assert_eq!(send(plain.clone()).unwrap().body, Payload::Text("info".into()));
    let seen = asked.recv().unwrap();
    assert!(seen.starts_with("GET /v1/info?a=1&b=2 HTTP/1.1\r\n"), "{seen}");
    assert_eq!(header(&seen, "host"), Some("localhost"));
    assert_eq!(header(&seen, "authorization"), Some("Bearer hush hush"));
    // Redirects stay with the socket, or are judged like any other address.
    send(request("GET", &url("/moved"))).unwrap();
    let error = send(request("GET", &url("/out"))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    let reach = Reach { is_named: true, allow_hosts: Some(listing(&["127.0.0.1"])) };
    send(HttpRequest { url: url("/out"), query: Vec::new(), reach, ..plain }).unwrap();
    assert_eq!(header(&outside.seen()[0], "authorization"), None);
    let error = send(request("GET", &url("/broken"))).unwrap_err();
    assert_eq!(error.to_string(), format!("`{}` answered with status 500", url("/broken")));
}

#[test]
fn only_a_manifest_names_a_socket() {
    let reach = Reach { is_named: false, allow_hosts: Some(listing(&["localhost", "127.0.0.0/8"])) };
    let error = send(HttpRequest { reach, ..request("GET", "unix:/run/x.sock:/") }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.to_string().starts_with("`unix:/run/x.sock` may not be contacted: "), "{error}");
}

#[test]
fn nobody_behind_a_socket_is_told() {
    let error = send(request("GET", "unix:/nowhere/x.sock:/v1")).unwrap_err();
    assert!(matches!(error, ExecError::Unreachable { .. }), "{error}");
    assert!(error.to_string().starts_with("`unix:/nowhere/x.sock:/v1` cannot be reached: "), "{error}");
    for url in ["unix:", "unix:/run/x", "unix:relative:/x", "unix://host/x", "unix:/run/x:", "unix::/"] {
        let error = send(request("GET", url)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidParams, "{url}: {error}");
    }
}
