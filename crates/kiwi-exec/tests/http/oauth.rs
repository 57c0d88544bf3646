//! Tokens: fetched with a client's credentials, kept, given up and fetched again.

use kiwi_exec::{Auth, ExecError, HttpClient, HttpRequest, OAuth2Client, Reach};
use kiwi_model::{ErrorKind, Explain, Secret};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::server::{Server, header, json, listing, redirect, reply};
use crate::support::block_on;
use crate::{all_texts, send};

const HUSH: &str = "hush:hush";

/// Gives out `token-0`, `token-1`, ….
fn authority(rest: &'static str) -> Server {
    Server::new(move |_, nth| json("200 OK", &format!(r#"{{"access_token":"token-{nth}"{rest}}}"#)))
}

fn by(authority: &Server, request: HttpRequest) -> HttpRequest {
    let client = OAuth2Client {
        token_url: authority.url("/token"),
        client_id: "me & you".into(),
        client_secret: Secret::new(HUSH),
        scopes: vec!["read".into(), "write".into()],
    };
    HttpRequest { auth: Some(Auth::OAuth2(client)), ..request }
}

#[test]
fn a_token_is_fetched_once_and_used_while_it_lasts() {
    let authority = authority(r#","token_type":"Bearer","expires_in":3600"#);
    let server = Server::saying("hello");
    let client = HttpClient::new();
    block_on(async {
        for _ in 0..3 {
            client.send(by(&authority, server.request("GET", "/"))).await.unwrap();
        }
    });
    let asked = authority.seen();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(asked[0].starts_with("POST /token HTTP/1.1"), "{}", asked[0]);
    // RFC 6749, 2.3.1: `me+%26+you:hush%3Ahush`.
    assert_eq!(header(&asked[0], "authorization"), Some("Basic bWUrJTI2K3lvdTpodXNoJTNBaHVzaA=="));
    assert!(asked[0].ends_with("\r\n\r\ngrant_type=client_credentials&scope=read+write"), "{}", asked[0]);
    for asked in server.seen() {
        assert_eq!(header(&asked, "authorization"), Some("Bearer token-0"));
    }
    assert!(
        !format!("{client:?}").contains("token-0") && !format!("{client:?}").contains("hush"),
        "{client:?}"
    );
}

#[test]
fn other_scopes_are_another_token() {
    let authority = authority("");
    let server = Server::saying("hello");
    let client = HttpClient::new();
    block_on(async {
        for scope in ["a", "b", "a"] {
            let mut request = by(&authority, server.request("GET", "/"));
            if let Some(Auth::OAuth2(client)) = &mut request.auth {
                client.scopes = vec![scope.into()];
            }
            client.send(request).await.unwrap();
        }
    });
    let used: Vec<String> =
        server.seen().iter().map(|asked| header(asked, "authorization").unwrap().to_owned()).collect();
    assert_eq!(used, ["Bearer token-0", "Bearer token-1", "Bearer token-0"]);
}

#[test]
fn a_token_that_ends_is_fetched_again_before_it_does() {
    let authority = authority(r#","expires_in":"1""#);
    let server = Server::saying("hello");
    let client = HttpClient::new();
    block_on(async {
        for pause in [0, 0, 600] {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            client.send(by(&authority, server.request("GET", "/"))).await.unwrap();
        }
    });
    assert_eq!(authority.seen().len(), 2);
    assert_eq!(header(server.seen().last().unwrap(), "authorization"), Some("Bearer token-1"));
}

#[test]
fn a_token_that_is_refused_is_fetched_again_once() {
    let authority = authority(r#","expires_in":3600"#);
    let server = Server::new(|asked, _| match header(asked, "authorization") {
        Some("Bearer token-1") => reply("200 OK", "", "in"),
        _ => reply("401 Unauthorized", "", "out"),
    });
    let client = HttpClient::new();
    block_on(async {
        client.send(by(&authority, server.request("POST", "/"))).await.unwrap();
        client.send(by(&authority, server.request("POST", "/"))).await.unwrap();
    });
    assert_eq!((authority.seen().len(), server.seen().len()), (2, 3));
    let never = Server::new(|_, _| reply("401 Unauthorized", "", "out token-2 token-3"));
    let error =
        block_on(client.send(HttpRequest { retries: 3, ..by(&authority, never.request("GET", "/")) }));
    let error = error.unwrap_err();
    assert!(matches!(error, ExecError::HttpStatus { status: 401, .. }), "{error}");
    assert_eq!(never.seen().len(), 2);
    assert!(!all_texts(&error).contains("token-2 token-3") && !all_texts(&error).contains(HUSH), "{error:?}");
}

#[test]
fn no_token_is_an_error_that_shows_no_secret() {
    let server = Server::saying("hello");
    let tries = AtomicUsize::new(0);
    for (answer, expected) in [
        (
            json("400 Bad Request", r#"{"error":"invalid_client","said":"hush:hush"}"#),
            "it answered with status 400",
        ),
        (json("401 Unauthorized", r#"{"said":"aHVzaDpodXNo hush%3Ahush"}"#), "it answered with status 401"),
        (json("200 OK", r#"{"token":"other-token"}"#), "the answer holds no `access_token`"),
        (
            json("200 OK", r#"{"access_token":"mac-token","token_type":"mac"}"#),
            "the token is not a bearer token",
        ),
        (reply("200 OK", "", "hello"), "the answer holds no `access_token`"),
        (redirect("/elsewhere"), "it answered with status 302"),
    ] {
        tries.fetch_add(1, Ordering::SeqCst);
        let authority = Server::new(move |_, _| answer.clone());
        let error = send(by(&authority, server.request("GET", "/"))).unwrap_err();
        let message = format!("`{}` gave no access token: {expected}", authority.url("/token"));
        assert_eq!((error.to_string(), error.kind()), (message, ErrorKind::ToolFailed));
        let texts = all_texts(&error);
        for secret in [HUSH, "hush%3Ahush", "other-token", "mac-token"] {
            assert!(!texts.contains(secret), "{texts}");
        }
    }
    assert_eq!(server.seen().len(), 0, "nothing is asked without a token");
}

#[test]
fn tokens_come_from_where_the_manifest_says_and_pass_the_same_guard() {
    let authority = authority("");
    let server = Server::saying("hello");
    // The list names the server's host; the authority is named by the manifest as well.
    let reach =
        Reach { is_named: false, allow_hosts: Some(listing(&[&format!("127.0.0.1:{}", server.port)])) };
    send(HttpRequest { reach, ..by(&authority, server.request("GET", "/")) }).unwrap();
    // A name that leads inside is not asked for a token.
    let mut inside = by(&authority, server.request("GET", "/"));
    if let Some(Auth::OAuth2(client)) = &mut inside.auth {
        client.token_url = format!("http://tokens.example:{}/", authority.port);
    }
    authority.seen();
    let client = HttpClient::new().looking_up(|_| Ok(vec!["127.0.0.1".parse().unwrap()]));
    let error = block_on(client.send(inside)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert_eq!(authority.seen().len(), 0);
}
