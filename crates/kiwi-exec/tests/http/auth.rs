//! Who asks: what a server sees, and what nobody else does.

use kiwi_exec::{Auth, ExecError, HttpRequest, KeyPlace, Payload};
use kiwi_model::Secret;

use crate::server::{Server, header, json, redirect, reply, request};
use crate::{all_texts, send};

const HUSH: &str = "hush hush/1+2=";

fn kinds() -> Vec<Auth> {
    let key = |place, name: &str| Auth::ApiKey { place, name: name.into(), key: Secret::new(HUSH) };
    vec![
        Auth::Bearer { token: Secret::new(HUSH) },
        Auth::Basic { username: "ada".into(), password: Secret::new(HUSH) },
        key(KeyPlace::Header, "X-Api-Key"),
        key(KeyPlace::Query, "key"),
    ]
}

fn assert_hidden(text: &str) {
    for form in [HUSH, "hush+hush%2F1%2B2%3D", "YWRhOmh1c2ggaHVzaC8xKzI9"] {
        assert!(!text.contains(form), "{text}");
    }
}

#[test]
fn a_server_sees_who_asks() {
    let server = Server::saying("hello");
    let mut seen = Vec::new();
    for auth in kinds() {
        let asked = HttpRequest { auth: Some(auth), ..server.request("GET", "/?a=1") };
        send(asked).unwrap();
        seen.extend(server.seen());
    }
    assert_eq!(header(&seen[0], "authorization"), Some("Bearer hush hush/1+2="));
    assert_eq!(header(&seen[1], "authorization"), Some("Basic YWRhOmh1c2ggaHVzaC8xKzI9"));
    assert_eq!(header(&seen[2], "x-api-key"), Some(HUSH));
    assert!(seen[3].starts_with("GET /?a=1&key=hush+hush%2F1%2B2%3D HTTP/1.1"), "{}", seen[3]);
    assert_eq!(header(&seen[3], "authorization"), None);
}

#[test]
fn who_asks_comes_before_what_headers_say() {
    let server = Server::saying("hello");
    let headers = vec![("Authorization".into(), "other".into())];
    let auth = Some(Auth::Bearer { token: Secret::new(HUSH) });
    send(HttpRequest { headers, auth, ..server.request("GET", "/") }).unwrap();
    let asked = &server.seen()[0];
    assert_eq!(header(asked, "authorization"), Some("Bearer hush hush/1+2="));
    assert!(!asked.contains("other"), "{asked}");
    let key = Auth::ApiKey { place: KeyPlace::Query, name: "key".into(), key: Secret::new("hush") };
    let query = vec![("key".into(), "other".into()), ("b".into(), "2".into())];
    send(HttpRequest { query, auth: Some(key), ..server.request("GET", "/?a=1&key") }).unwrap();
    let asked = &server.seen()[0];
    assert!(asked.starts_with("GET /?a=1&b=2&key=hush HTTP/1.1"), "{asked}");
}

#[test]
fn secrets_do_not_come_back() {
    let echo = |status: &'static str| {
        Server::new(move |asked, _| {
            let said: Vec<&str> = asked.lines().collect();
            json(status, &serde_json::json!({"said": said, asked: 1}).to_string())
        })
    };
    let (good, bad) = (echo("200 OK"), echo("400 Bad Request"));
    for auth in kinds() {
        assert_hidden(&format!("{auth:?}"));
        let answer = send(HttpRequest { auth: Some(auth.clone()), ..good.request("GET", "/") }).unwrap();
        assert_hidden(&format!("{answer:?}"));
        assert!(matches!(&answer.body, Payload::Json(value) if value.to_string().contains("***")));
        let error = send(HttpRequest { auth: Some(auth), ..bad.request("GET", "/") }).unwrap_err();
        assert_hidden(&all_texts(&error));
        assert!(all_texts(&error).contains("***"), "{error:?}");
    }
}

#[test]
fn secrets_are_in_no_error() {
    let server = Server::new(|asked, _| match asked.split(' ').nth(1).unwrap().split('?').next().unwrap() {
        "/round" => redirect("/round"),
        "/slow" => {
            std::thread::sleep(std::time::Duration::from_secs(1));
            String::new()
        }
        "/echo" => {
            let query = asked.split(' ').nth(1).unwrap().replace("/echo?", "");
            redirect(&format!("http://127.0.0.1:1/{query}/hush hush/1+2=/{HUSH}"))
        }
        _ => reply("500 Oh", "", "no"),
    });
    for auth in kinds() {
        for path in ["/round", "/slow", "/echo", "/other"] {
            let timeout = std::time::Duration::from_millis(500);
            let asked = HttpRequest { auth: Some(auth.clone()), timeout, ..server.request("GET", path) };
            assert_hidden(&all_texts(&send(asked).unwrap_err()));
        }
        let nobody = HttpRequest { auth: Some(auth), ..request("GET", "http://127.0.0.1:1/x") };
        assert_hidden(&all_texts(&send(nobody).unwrap_err()));
    }
    let key = Auth::ApiKey { place: KeyPlace::Query, name: "key".into(), key: Secret::new(HUSH) };
    let error = send(HttpRequest { auth: Some(key), ..server.request("GET", "/other?x=1") }).unwrap_err();
    let expected = format!("`{}?key=***` answered with status 500", server.url("/other"));
    assert_eq!(error.to_string(), expected);
    let bad = Auth::Bearer { token: Secret::new("hush\nhush") };
    let error = send(HttpRequest { auth: Some(bad), ..server.request("GET", "/") }).unwrap_err();
    assert_eq!(error.to_string(), "header `authorization` is not valid in an HTTP request");
}

#[test]
fn a_redirect_keeps_secrets_at_home() {
    let stranger = Server::saying("hello");
    let there = stranger.url("/there");
    let server =
        Server::new(move |asked, _| match asked.split(' ').nth(1).unwrap().split('?').next().unwrap() {
            "/out" => redirect(&there),
            "/in" => redirect("/done"),
            _ => reply("200 OK", "", "home"),
        });
    for auth in kinds() {
        let headers = vec![
            ("X-Own".into(), "own".into()),
            ("Cookie".into(), "c=1".into()),
            ("Accept".into(), "text/plain".into()),
        ];
        let asked = HttpRequest { headers, auth: Some(auth.clone()), ..server.request("GET", "/out") };
        // The other port is another host: here it has to be listed.
        let reach =
            kiwi_exec::Reach { is_named: true, allow_hosts: Some(crate::server::listing(&["127.0.0.1"])) };
        send(HttpRequest { reach, ..asked.clone() }).unwrap();
        let seen = stranger.seen();
        assert_hidden(&seen[0]);
        assert!(!seen[0].contains("key"), "{}", seen[0]);
        for (name, expected) in
            [("authorization", None), ("x-own", None), ("cookie", None), ("accept", Some("text/plain"))]
        {
            assert_eq!(header(&seen[0], name), expected);
        }
        server.seen();
        send(HttpRequest { url: server.url("/in"), ..asked }).unwrap();
        let seen = server.seen();
        assert!(seen[1].contains("/done") && header(&seen[1], "x-own") == Some("own"), "{seen:?}");
        let carries = |asked: &str| asked.contains(HUSH) || asked.contains("hush+") || asked.contains("YWRh");
        assert!(carries(&seen[0]) && carries(&seen[1]), "{seen:?}");
    }
}

#[test]
fn a_name_that_is_no_header_is_refused() {
    let auth = Auth::ApiKey { place: KeyPlace::Header, name: "a b".into(), key: Secret::new(HUSH) };
    let error = send(HttpRequest { auth: Some(auth), ..request("GET", "http://127.0.0.1:1/") }).unwrap_err();
    assert!(matches!(error, ExecError::BadRequest { what: "header", .. }), "{error}");
}
