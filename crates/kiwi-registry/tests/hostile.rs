//! Publications and requests that mean no good.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_types,
    reason = "a test fails by panicking"
)]

mod support;

use kiwi_model::Digest;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use support::{Client, Engine, Ground, Package, Registry};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

on_both!(
    what_is_not_what_it_says_is_refused,
    files_that_cannot_be_are_refused,
    manifests_that_are_not_the_files_are_refused,
    signatures_are_checked,
    requests_that_cannot_be_read_are_told_so,
    what_a_client_has_is_not_sent_again,
    who_asks_too_often_waits,
    slow_and_idle_clients_are_cut_off,
    what_is_counted_can_be_read,
    the_first_token_is_made_once,
);

/// A publication that differs in one place from a good one.
async fn refused(
    owner: &Client,
    package: &Package,
    change: impl FnOnce(&mut Value),
    status: u16,
    kind: &str,
) -> Value {
    owner.upload(package).await;
    let mut publication = package.publication();
    change(&mut publication);
    let fault = owner.json("PUT", &package.path(), &publication).await.expect_fault(status, kind);
    owner.get(&package.path()).await.expect_fault(404, "not_found");
    fault
}

async fn what_is_not_what_it_says_is_refused(engine: Engine) {
    let registry = Registry::new(engine).await;
    let owner = registry.publisher("one").await;
    let package = Package::new("greet", "1.0.0");
    let other = json!(Digest::of(b"other"));
    let it = |change: fn(&mut Value)| refused(&owner, &package, change, 422, "integrity_mismatch");
    it(|p| p["integrity"] = json!(Digest::of(b"other"))).await;
    it(|p| p["files"][1]["is_executable"] = json!(false)).await;
    it(|p| p["files"][1]["size"] = json!(1)).await;
    let missing =
        refused(&owner, &package, |p| p["files"][1]["sha256"] = other, 422, "integrity_mismatch").await;
    assert!(missing["message"].as_str().unwrap().contains("was said to be"), "{missing}");
    it(|p| p["manifest"]["description"] = json!("another")).await;
    // A blob that is not what its address says.
    let path = format!("/v1/blobs/{}", Digest::of(b"right"));
    let reply = owner.send("PUT", &path, &[], b"wrong").await;
    reply.expect_fault(422, "integrity_mismatch");
    owner
        .json("POST", "/v1/blobs/missing", &json!({"digests": [Digest::of(b"right")]}))
        .await
        .expect_status(200);
    // Files that were never uploaded.
    let never = Package::new("never", "1.0.0").with("x", b"these bytes never came");
    for (path, bytes, _) in &never.files {
        if path != "x" {
            owner.put_blob(bytes).await.expect_status(204);
        }
    }
    owner.json("PUT", &never.path(), &never.publication()).await.expect_fault(422, "missing_requirement");
    owner.publish(&package).await.expect_status(201);
}

async fn files_that_cannot_be_are_refused(engine: Engine) {
    let registry = Registry::new(engine).await;
    let owner = registry.publisher("one").await;
    for path in [
        "../x",
        "/etc/passwd",
        "a/../../x",
        "a\\b",
        "a//b",
        "c:x",
        "kiwi.sig",
        "a\u{0}b",
        "MAIN.py",
        "main.py",
        "tool.yaml/x",
    ] {
        let package = Package::new("greet", "1.0.0").with(path, b"x");
        let fault = refused(&owner, &package, |_| {}, 422, "invalid_params").await;
        assert!(!fault["details"]["problems"].as_array().unwrap().is_empty());
    }
    let package = Package::new("greet", "1.0.0");
    let none = |p: &mut Value| p["files"] = json!([]);
    refused(&owner, &package, none, 422, "invalid_params").await;
    let many = |p: &mut Value| {
        let digest = json!(Digest::of(b""));
        p["files"] = (0..20_001)
            .map(|n| json!({"path": format!("f{n}"), "sha256": digest, "is_executable": false, "size": 0}))
            .collect();
    };
    refused(&owner, &package, many, 422, "invalid_params").await;
    let huge = |p: &mut Value| p["files"][0]["size"] = json!(u64::MAX);
    refused(&owner, &package, huge, 422, "invalid_params").await;
    // A million entries do not even come in.
    let entry =
        format!("{{\"path\":\"f\",\"sha256\":\"{}\",\"is_executable\":false,\"size\":0}},", Digest::of(b""));
    let head = format!(
        "PUT {} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
        package.path(),
        owner.token.as_ref().unwrap()
    );
    let mut stream = TcpStream::connect(owner.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let piece = entry.repeat(1000);
    let piece = format!("{:x}\r\n{piece}\r\n", piece.len());
    let mut sent = 0;
    for _ in 0..1000 {
        if stream.write_all(piece.as_bytes()).await.is_err() {
            break;
        }
        sent += piece.len();
    }
    assert!(sent < 100 << 20, "{sent} bytes were taken");
    for field in ["manifest", "files", "integrity"] {
        let package = Package::new("greet", "1.0.0");
        let less = |p: &mut Value| drop(p.as_object_mut().unwrap().remove(field));
        refused(&owner, &package, less, 422, "usage").await;
    }
    let package = Package::new("greet", "1.0.0");
    refused(&owner, &package, |p| p["extra"] = json!(1), 422, "usage").await;
    refused(&owner, &package, |p| p["files"][0]["mode"] = json!(1), 422, "usage").await;
}

async fn manifests_that_are_not_the_files_are_refused(engine: Engine) {
    let registry = Registry::new(engine).await;
    let owner = registry.publisher("one").await;
    // A sound hash over a manifest that is not the one in `tool.yaml`.
    let package = Package::described("greet", "1.0.0", "python_runtime", "harmless");
    let inside = Package::described("greet", "1.0.0", "bash_runtime", "harmful");
    let mut mixed = package.clone();
    mixed.files[0].1.clone_from(&inside.files[0].1);
    owner.upload(&mixed).await;
    let mut publication = mixed.publication();
    publication["manifest"] = package.manifest();
    let entries: Vec<kiwi_model::FileEntry> = mixed
        .files
        .iter()
        .map(|(path, bytes, is_executable)| kiwi_model::FileEntry {
            path: path.clone(),
            sha256: Digest::of(bytes),
            is_executable: *is_executable,
        })
        .collect();
    let integrity =
        kiwi_model::integrity_of(&mixed.id, &mixed.version, &package.manifest(), &entries).unwrap();
    publication["integrity"] = json!(integrity);
    owner.json("PUT", &mixed.path(), &publication).await.expect_fault(422, "invalid_manifest");
    // Another tool, another version, under this address.
    for other in [Package::new("other", "1.0.0"), Package::new("greet", "1.0.1")] {
        owner.upload(&other).await;
        let reply = owner.json("PUT", "/v1/tools/greet/versions/1.0.0", &other.publication()).await;
        reply.expect_fault(422, "invalid_manifest");
    }
    for manifest in [json!(null), json!([]), json!({}), json!({"tool_id": "greet"}), json!({"manifest": {}})]
    {
        let package = Package::new("greet", "1.0.0");
        refused(&owner, &package, |p| p["manifest"] = manifest, 422, "invalid_manifest").await;
    }
    // Deeper than anything is read.
    let deep = format!("{{\"manifest\":{}1{}}}", "[".repeat(5000), "]".repeat(5000));
    let headers = [("content-type", "application/json")];
    let reply = owner.send("PUT", "/v1/tools/greet/versions/1.0.0", &headers, deep.as_bytes()).await;
    reply.expect_fault(400, "usage");
}

async fn signatures_are_checked(engine: Engine) {
    let registry = Registry::new(engine).await;
    let owner = registry.publisher("one").await;
    let package = Package::new("greet", "1.0.0");
    for signature in [
        json!({"key": "ed25519:00", "signature": "00"}),
        json!({"key": format!("ed25519:{}", "0".repeat(64)), "signature": "0".repeat(128)}),
        json!({"key": "", "signature": ""}),
    ] {
        refused(&owner, &package, |p| p["signature"] = signature, 422, "integrity_mismatch").await;
    }
    let folder = tempfile::tempdir().unwrap();
    let (project, user) = (folder.path().join("project"), folder.path().join("user"));
    std::fs::create_dir_all(project.join(".ai/tools")).unwrap();
    std::fs::create_dir_all(&user).unwrap();
    std::fs::write(project.join(".ai/tools/greet.py"), "").unwrap();
    let locations = kiwi_space::Locations { project: Some(project.clone()), cwd: project, user: Some(user) };
    let spaces = kiwi_space::Spaces::open(locations).unwrap();
    let integrity = package.integrity().to_string();
    let (_, signed) = spaces
        .sign(kiwi_model::Space::Project, std::path::Path::new(".ai/tools/greet.py"), &integrity)
        .unwrap();
    let mut publication = package.publication();
    publication["signature"] = json!({"key": signed.key, "signature": signed.signature});
    let release = owner.json("PUT", &package.path(), &publication).await.expect_status(201);
    assert_eq!(release["signature"], publication["signature"]);
    // The same signature over another version is none.
    let next = Package::new("greet", "1.0.1");
    let kept = publication["signature"].clone();
    refused(&owner, &next, |p| p["signature"] = kept, 422, "integrity_mismatch").await;
}

async fn requests_that_cannot_be_read_are_told_so(engine: Engine) {
    let registry = Registry::new(engine).await;
    let owner = registry.publisher("one").await;
    let json_headers = [("content-type", "application/json")];
    for (method, path, status, kind) in [
        ("GET", "/", 404, "not_found"),
        ("GET", "/v1", 404, "not_found"),
        ("GET", "/v1/nonsense", 404, "not_found"),
        ("GET", "/v1/tools/%zz", 400, "usage"),
        ("GET", "/v1/tools/%ff%fe", 400, "usage"),
        ("GET", "/v1/tools/..%2f..%2fetc", 400, "usage"),
        ("GET", "/v1/tools/a/versions/one", 400, "usage"),
        ("GET", "/v1/blobs/sha256:zz", 400, "usage"),
        ("POST", "/v1/status", 405, "usage"),
        ("DELETE", "/v1/search", 405, "usage"),
        ("OPTIONS", "/v1/tools/a", 405, "usage"),
        ("BREW", "/v1/status", 405, "usage"),
    ] {
        let reply = owner.send(method, path, &[], b"").await;
        reply.expect_fault(status, kind);
        assert_eq!(reply.header("content-type"), Some("application/json"), "{path}");
        assert_eq!(reply.header("allow").is_some(), status == 405, "{path}");
    }
    let missing = "/v1/blobs/missing";
    owner.send("POST", missing, &json_headers, b"{").await.expect_fault(400, "usage");
    owner.send("POST", missing, &json_headers, b"").await.expect_fault(400, "usage");
    owner.send("POST", missing, &json_headers, b"\xff").await.expect_fault(400, "usage");
    owner.send("POST", missing, &json_headers, b"{\"digests\": 1}").await.expect_fault(422, "usage");
    owner
        .send("POST", missing, &json_headers, b"{\"digests\": [\"sha256:0\"]}")
        .await
        .expect_fault(422, "usage");
    owner.send("POST", missing, &[], b"{}").await.expect_fault(415, "usage");
    owner.send("POST", missing, &[("content-type", "text/plain")], b"{}").await.expect_fault(415, "usage");
    let packed = [("content-type", "application/json"), ("content-encoding", "gzip")];
    owner.send("POST", missing, &packed, b"{}").await.expect_fault(415, "usage");
    let long = " ".repeat((4 << 20) + 1);
    owner.send("POST", missing, &json_headers, long.as_bytes()).await.expect_fault(413, "usage");
    let token = owner.token.as_ref().unwrap();
    let announced = format!(
        "PUT /v1/blobs/{} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {token}\r\ncontent-length: 99999999999\r\n\r\n",
        Digest::of(b"")
    );
    owner.raw(announced.as_bytes()).await.expect_fault(413, "usage");
    // A body that ends too early is not a shorter body.
    let cut = format!(
        "PUT /v1/blobs/{} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncontent-length: 10\r\n\r\n12345",
        Digest::of(b"12345")
    );
    let mut stream = TcpStream::connect(owner.address).await.unwrap();
    stream.write_all(cut.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let _ = stream.read_to_end(&mut Vec::new()).await;
    let question = json!({"digests": [Digest::of(b"12345")]});
    assert_eq!(owner.json("POST", missing, &question).await.expect_status(200), question);
    for value in ["Basic YTpi", "Bearer", "Bearer a b", &format!("Bearer {}", "x".repeat(600))] {
        let nobody = registry.nobody();
        nobody.send("GET", "/v1/status", &[("authorization", value)], b"").await.expect_fault(401, "denied");
    }
    let reason = json!({"reason": "x".repeat(501)});
    owner.publish(&Package::new("greet", "1.0.0")).await.expect_status(201);
    owner.json("PUT", "/v1/tools/greet/versions/1.0.0/yanked", &reason).await.expect_fault(422, "usage");
    owner
        .json("PUT", "/v1/tools/greet/versions/1.0.0/yanked", &json!({"reason": "a\u{0}"}))
        .await
        .expect_fault(422, "usage");
}

async fn what_a_client_has_is_not_sent_again(engine: Engine) {
    let registry = Registry::new(engine).await;
    let owner = registry.publisher("one").await;
    let package = Package::new("greet", "1.0.0");
    owner.publish(&package).await.expect_status(201);
    let blob = format!("/v1/blobs/{}", Digest::of(&package.files[1].1));
    let nobody = registry.nobody();
    for path in ["/v1/tools/greet", "/v1/resolve/greet", &package.path(), &blob] {
        let first = nobody.get(path).await;
        assert!(first.header("cache-control").unwrap().starts_with("public"), "{path}");
        let tag = first.header("etag").unwrap().to_owned();
        let second = nobody.send("GET", path, &[("if-none-match", &tag)], b"").await;
        assert_eq!((second.status, second.body.len(), second.header("etag")), (304, 0, Some(tag.as_str())));
        let third = nobody.send("GET", path, &[("if-none-match", "\"other\"")], b"").await;
        assert_eq!((third.status, third.body), (200, first.body));
    }
    assert!(nobody.get(&blob).await.header("cache-control").unwrap().contains("immutable"));
    // A yank is a change.
    let tag = nobody.get(&package.path()).await.header("etag").unwrap().to_owned();
    owner
        .json("PUT", &format!("{}/yanked", package.path()), &json!({"reason": "x"}))
        .await
        .expect_status(200);
    assert_eq!(nobody.send("GET", &package.path(), &[("if-none-match", &tag)], b"").await.status, 200);
    // Whoever may not see it learns nothing by its tag.
    owner.json("PATCH", "/v1/tools/greet", &json!({"visibility": "private"})).await.expect_status(200);
    let tag = format!("\"{}\"", Digest::of(&package.files[1].1));
    nobody.send("GET", &blob, &[("if-none-match", &tag)], b"").await.expect_fault(404, "not_found");
}

async fn who_asks_too_often_waits(engine: Engine) {
    let ground = Ground::new(engine).await;
    let mut options = ground.options();
    (options.limits.requests_per_second, options.limits.burst) = (1, 5);
    let admin = ground.serve(options).await;
    let nobody = Client { token: None, ..admin.clone() };
    // However slow the machine: sooner or later the bucket is empty.
    let empty = |client: Client| async move {
        for _ in 0..100 {
            let reply = client.get("/v1/status").await;
            if reply.status == 429 {
                return reply;
            }
        }
        panic!("nobody was told to wait");
    };
    let refused = empty(nobody.clone()).await;
    refused.expect_fault(429, "rate_limited");
    assert_eq!(refused.header("retry-after"), Some("1"));
    // Nor by guessing tokens; but who has one has a bucket of their own.
    empty(Client { token: Some("kiwi_guess".into()), ..admin.clone() }).await;
    admin.get("/v1/status").await.expect_status(200);
    tokio::time::sleep(Duration::from_millis(1100)).await;
    nobody.get("/v1/status").await.expect_status(200);
}

async fn slow_and_idle_clients_are_cut_off(engine: Engine) {
    let ground = Ground::new(engine).await;
    let mut options = ground.options();
    options.limits.patience = Duration::from_millis(300);
    options.limits.connections = 4;
    let admin = ground.serve(options).await;
    let begun = Instant::now();
    // Half a head, and half a body.
    let mut head = TcpStream::connect(admin.address).await.unwrap();
    head.write_all(b"GET /v1/status HTTP/1.1\r\nhost:").await.unwrap();
    let _ = head.read_to_end(&mut Vec::new()).await;
    let token = admin.token.as_ref().unwrap();
    let half = format!(
        "PUT /v1/blobs/{} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncontent-length: 10\r\n\r\n1",
        Digest::of(b"")
    );
    let reply = admin.raw(half.as_bytes()).await;
    reply.expect_fault(408, "timeout");
    // As many idle ones as there is room for make way in time.
    let mut idle = Vec::new();
    for _ in 0..4 {
        idle.push(TcpStream::connect(admin.address).await.unwrap());
    }
    admin.get("/v1/status").await.expect_status(200);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    // One that asks for much and takes nothing.
    let package = Package::new("large", "1.0.0").with("data", &vec![7; 30 << 20]);
    admin.publish(&package).await.expect_status(201);
    let ask = format!("GET /v1/blobs/{} HTTP/1.1\r\nhost: x\r\n\r\n", Digest::of(&vec![7; 30 << 20]));
    let mut greedy = Vec::new();
    for _ in 0..4 {
        let mut stream = TcpStream::connect(admin.address).await.unwrap();
        stream.write_all(ask.as_bytes()).await.unwrap();
        greedy.push(stream);
    }
    tokio::time::timeout(Duration::from_secs(10), admin.get("/v1/status")).await.unwrap().expect_status(200);
}

async fn what_is_counted_can_be_read(engine: Engine) {
    let registry = Registry::new(engine).await;
    registry.admin.publish(&Package::new("greet", "1.0.0")).await.expect_status(201);
    registry.nobody().get("/v1/nonsense").await.expect_fault(404, "not_found");
    let metrics = String::from_utf8(registry.nobody().get("/metrics").await.body).unwrap();
    let kind = if engine == Engine::Sqlite { "sqlite" } else { "postgres" };
    for line in [
        "kiwi_registry_requests_total{method=\"GET\",route=\"unknown\",status=\"404\"} 1\n",
        "kiwi_registry_requests_total{method=\"PUT\",route=\"/v1/tools/{id}/versions/{version}\",status=\"201\"} 1\n",
        "kiwi_registry_request_seconds_count{route=\"/v1/blobs/{digest}\"} 2\n",
        "kiwi_registry_publishes_total 1\n",
        &format!("kiwi_registry_database{{kind=\"{kind}\"}} 1\n"),
    ] {
        assert!(metrics.contains(line), "{line}{metrics}");
    }
    let document = registry.nobody().get("/v1/openapi.json").await.expect_status(200);
    assert_eq!(document["openapi"], "3.1.0");
}

async fn the_first_token_is_made_once(engine: Engine) {
    let ground = Ground::new(engine).await;
    let mut options = ground.options();
    options.admin_token = None;
    let first = kiwi_registry::Server::open(options.clone()).await.unwrap();
    let token = first.first_token().unwrap().expose().to_owned();
    assert!(!format!("{:?}", first.first_token()).contains(&token));
    drop(first);
    let second = kiwi_registry::Server::open(options.clone()).await.unwrap();
    assert!(second.first_token().is_none());
    let admin = Client { token: Some(token), ..ground.serve(options.clone()).await };
    let who = admin.get("/v1/whoami").await.expect_status(200);
    assert_eq!(who, json!({"user": "admin", "scopes": ["admin"], "namespaces": []}));
    options.admin_token = Some(kiwi_model::Secret::new("with a space"));
    assert!(kiwi_registry::Server::open(options).await.is_err());
}
