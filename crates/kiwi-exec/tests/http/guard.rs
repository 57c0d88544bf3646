//! Whom a request reaches, and whom it does not.

use kiwi_exec::{ExecError, HttpClient, HttpRequest, Reach};
use kiwi_model::{ErrorKind, Explain};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::send;
use crate::server::{Server, listing, redirect, reply, request};
use crate::support::block_on;

fn reach(is_named: bool, hosts: Option<&[&str]>) -> Reach {
    Reach { is_named, allow_hosts: hosts.map(listing) }
}

/// A client for which every name has these addresses.
fn everywhere(addresses: &'static [&'static str]) -> HttpClient {
    HttpClient::new()
        .looking_up(move |_| Ok(addresses.iter().map(|address| address.parse().unwrap()).collect()))
}

fn refusal(error: &ExecError) -> String {
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert!(error.hint().unwrap().contains("`allow_hosts`"));
    error.to_string()
}

#[test]
fn an_internal_address_is_reached_only_when_the_manifest_says_so() {
    let server = Server::saying("hello");
    let port = server.port;
    for (is_named, hosts, reaches) in [
        (true, None, true),
        (false, None, false),
        (false, Some(vec!["127.0.0.1".to_owned()]), true),
        (false, Some(vec!["127.0.0.0/8".into()]), true),
        (false, Some(vec![format!("127.0.0.1:{port}")]), true),
        (false, Some(vec!["127.0.0.1:1".into()]), false),
        (false, Some(vec!["localhost".into()]), false),
        (false, Some(vec![]), false),
        (true, Some(vec![]), true),
        (true, Some(vec!["example.org".into()]), true),
    ] {
        let hosts: Option<Vec<&str>> = hosts.as_ref().map(|hosts| hosts.iter().map(String::as_str).collect());
        let asked = HttpRequest { reach: reach(is_named, hosts.as_deref()), ..server.request("GET", "/") };
        match send(asked) {
            Ok(_) => assert!(reaches, "{hosts:?}"),
            Err(error) => {
                assert!(!reaches, "{hosts:?}: {error}");
                let expected = "`127.0.0.1` may not be contacted: it is a loopback address";
                assert_eq!(refusal(&error), expected);
                assert_eq!(error.details(), serde_json::json!({"host": "127.0.0.1", "address": "127.0.0.1"}));
            }
        }
    }
}

#[test]
fn every_way_to_write_an_internal_address_is_seen_through() {
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "127。0。0。1",
        "0.0.0.0",
        "[::]",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[0:0:0:0:0:ffff:7f00:1]",
        "169.254.169.254",
        "[::ffff:a9fe:a9fe]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:7f00:1::]",
        "10.1.2.3",
        "192.168.0.1",
        "100.64.0.1",
        "[fd00::1]",
        "[fe80::1]",
        "224.0.0.1",
        "255.255.255.255",
        "192.0.2.1",
        "[2001:db8::1]",
    ] {
        let asked = HttpRequest { reach: Reach::default(), ..request("GET", &format!("http://{host}:9/")) };
        let error = send(asked).unwrap_err();
        assert!(refusal(&error).contains(" address"), "{host}: {error}");
    }
}

#[test]
fn a_name_is_judged_by_its_addresses() {
    let server = Server::saying("hello");
    let url = format!("http://api.example.org:{}/", server.port);
    let asks = |client: &HttpClient, reach: Reach| {
        block_on(client.send(HttpRequest { reach, ..request("GET", &url) }))
    };
    // Named or not: a name that leads inside has to be listed.
    let inside = everywhere(&["127.0.0.1"]);
    for is_named in [true, false] {
        let error = asks(&inside, reach(is_named, None)).unwrap_err();
        let expected = "`api.example.org` may not be contacted: it resolves to 127.0.0.1, a loopback address";
        assert_eq!(refusal(&error), expected);
        assert_eq!(error.details()["address"], "127.0.0.1");
    }
    for hosts in [&["api.example.org"][..], &["*.example.org"], &["127.0.0.1"], &["127.0.0.0/8", "x.org"]] {
        asks(&inside, reach(false, Some(hosts))).unwrap();
    }
    for hosts in [&["example.org"][..], &["*.api.example.org"], &["10.0.0.0/8"], &["127.0.0.1:1"]] {
        refusal(&asks(&inside, reach(false, Some(hosts))).unwrap_err());
    }
    // One address inside is enough, wherever it stands.
    let mixed = everywhere(&["8.8.8.8", "10.0.0.1"]);
    assert!(refusal(&asks(&mixed, reach(true, None)).unwrap_err()).contains("10.0.0.1, a private address"));
    assert_eq!(server.seen().len(), 4);
    let nobody = asks(&everywhere(&[]), reach(true, None)).unwrap_err();
    assert_eq!(nobody.kind(), ErrorKind::UpstreamUnavailable, "{nobody}");
}

#[test]
fn one_request_opens_no_door_for_another() {
    // The server keeps its connections open, and the client would like to use them again.
    let server = Server::new(|_, _| reply("200 OK", "", "hello").replace("connection: close\r\n", ""));
    let url = format!("http://api.example.org:{}/", server.port);
    let client = everywhere(&["127.0.0.1"]);
    block_on(async {
        let listed = reach(false, Some(&["api.example.org"]));
        client.send(HttpRequest { reach: listed, ..request("GET", &url) }).await.unwrap();
        let error = client.send(HttpRequest { reach: reach(true, None), ..request("GET", &url) }).await;
        refusal(&error.unwrap_err());
    });
}

#[test]
fn a_name_is_looked_up_once_for_each_connection() {
    // The first answer is judged good; a second lookup, were there one, would lead inside.
    let server = Server::saying("hello");
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let client = HttpClient::new().looking_up(move |_| {
        let first = counted.fetch_add(1, Ordering::SeqCst) == 0;
        // TEST-NET is nowhere, and listed here: what matters is that nobody asks again.
        Ok(vec![if first { IpAddr::from([192, 0, 2, 1]) } else { IpAddr::from([127, 0, 0, 1]) }])
    });
    let asked = HttpRequest {
        reach: reach(false, Some(&["192.0.2.0/24"])),
        timeout: std::time::Duration::from_millis(500),
        ..request("GET", &format!("http://rebind.example:{}/", server.port))
    };
    block_on(client.send(asked)).unwrap_err();
    assert_eq!((count.load(Ordering::SeqCst), server.seen().len()), (1, 0));
}

#[test]
fn localhost_is_this_machine_and_nothing_else() {
    let server = Server::saying("hello");
    // As the system looks it up.
    send(request("GET", &format!("http://localhost:{}/", server.port))).unwrap();
    for name in ["localhost", "LOCALHOST", "localhost."] {
        let url = format!("http://{name}:{}/", server.port);
        let client = everywhere(&["127.0.0.1"]);
        block_on(client.send(request("GET", &url))).unwrap();
        let error = block_on(client.send(HttpRequest { reach: Reach::default(), ..request("GET", &url) }));
        let error = error.unwrap_err();
        assert!(refusal(&error).starts_with("`localhost` may not be contacted: it resolves to "), "{error}");
    }
    let error = block_on(everywhere(&["169.254.169.254"]).send(request("GET", "http://localhost/")));
    assert!(refusal(&error.unwrap_err()).contains("which is not this machine"));
}

#[test]
fn a_redirect_is_judged_like_any_other_address() {
    let inside = Server::saying("inside");
    let port = inside.port;
    let server = Server::new(move |asked, _| match asked.split(' ').nth(1).unwrap() {
        "/name" => redirect(&format!("http://inside.example:{port}/")),
        "/address" => redirect(&format!("http://127.0.0.1:{port}/")),
        "/localhost" => redirect(&format!("http://localhost:{port}/")),
        "/same" => redirect("/done"),
        "/metadata" => redirect("http://169.254.169.254/latest/meta-data/"),
        _ => reply("200 OK", "", "done"),
    });
    let client = everywhere(&["127.0.0.1"]);
    let asks =
        |path: &str, reach| block_on(client.send(HttpRequest { reach, ..server.request("GET", path) }));
    for path in ["/name", "/address", "/localhost", "/metadata"] {
        // The manifest names the first address, and no other.
        refusal(&asks(path, reach(true, None)).unwrap_err());
        // Nor does a list of others help.
        refusal(&asks(path, reach(true, Some(&["example.org"]))).unwrap_err());
    }
    assert_eq!(inside.seen().len(), 0);
    asks("/same", reach(true, None)).unwrap();
    asks("/name", reach(true, Some(&["inside.example"]))).unwrap();
    asks("/address", reach(true, Some(&["127.0.0.0/8"]))).unwrap();
    assert_eq!(inside.seen().len(), 2);
}

#[test]
fn a_list_is_all_there_is() {
    // Were it asked, the server would answer; it is not listed.
    let client = everywhere(&["93.184.216.34"]);
    let only = reach(false, Some(&["api.example.org", "10.0.0.0/8:80"]));
    for url in ["https://other.example.org/", "http://8.8.8.8/", "https://api.example.org.evil.example/"] {
        let asked = HttpRequest { reach: only.clone(), ..request("GET", url) };
        let error = refusal(&block_on(client.send(asked)).unwrap_err());
        assert!(error.ends_with("`allow_hosts` does not list it"), "{url}: {error}");
    }
    let asked = HttpRequest { reach: only, ..request("GET", "http://other.example.org/") };
    let error = refusal(&block_on(client.send(asked)).unwrap_err());
    assert!(error.ends_with("it resolves to 93.184.216.34, and `allow_hosts` lists neither"), "{error}");
}
