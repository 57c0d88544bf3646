//! What a registry does, the same on both engines.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod support;

use kiwi_model::Digest;
use serde_json::json;
use support::{Client, Engine, Package, Registry};

on_both!(
    published_is_found_resolved_and_read,
    a_chain_honours_requirements_yanks_and_early_versions,
    chains_that_have_no_end_are_refused,
    versions_never_change,
    exactly_one_of_many_publishers_wins,
    a_try_that_is_made_again_is_the_same_try,
    who_sees_what,
    who_may_do_what,
    tokens_are_made_listed_and_ended,
    namespaces_have_owners,
    lockfiles_are_shared_without_losing_any,
    large_blobs_come_back_whole,
    knowing_a_digest_is_not_having_the_bytes,
    search_finds_by_name_words_and_meaning,
    several_servers_share_one_database,
);

async fn published_is_found_resolved_and_read(engine: Engine) {
    let registry = Registry::new(engine).await;
    let owner = registry.publisher("one").await;
    let package = Package::new("team.greet", "1.0.0").with("lib/data.txt", b"hello");
    let release = owner.publish(&package).await.expect_status(201);
    assert_eq!(release["integrity"], json!(package.integrity()));
    assert_eq!((&release["publisher"], &release["executor"]), (&json!("one"), &json!("python_runtime")));
    assert_eq!(release["files"].as_array().unwrap().len(), 3);
    assert_eq!(release["manifest"], package.manifest());

    let nobody = registry.nobody();
    assert_eq!(nobody.get(&package.path()).await.expect_status(200), release);
    let tool = nobody.get("/v1/tools/team.greet").await.expect_status(200);
    assert_eq!((&tool["latest"], &tool["owners"]), (&json!("1.0.0"), &json!(["one"])));
    let chain = nobody.get("/v1/resolve/team.greet").await.expect_status(200);
    assert_eq!(chain["links"][0]["integrity"], release["integrity"]);
    let beyond = json!({"tool_id": "python_runtime", "requirement": null, "is_known": false});
    assert_eq!(chain["beyond"], beyond);
    for (_, bytes, _) in &package.files {
        let reply = nobody.get(&format!("/v1/blobs/{}", Digest::of(bytes))).await;
        assert_eq!((reply.status, &reply.body), (200, bytes));
    }
    nobody.get("/v1/tools/team.other").await.expect_fault(404, "not_found");
    nobody.get("/v1/tools/team.greet/versions/1.0.1").await.expect_fault(404, "not_found");
    let status = nobody.get("/v1/status").await.expect_status(200);
    assert_eq!((&status["name"], &status["protocol"]), (&json!("kiwi"), &json!(1)));
}

/// Which versions the links of a chain have.
async fn versions(client: &Client, path: &str) -> Vec<String> {
    let chain = client.get(path).await.expect_status(200);
    let name = |link: &serde_json::Value| {
        format!("{}@{}", link["tool_id"].as_str().unwrap(), link["version"].as_str().unwrap())
    };
    chain["links"].as_array().unwrap().iter().map(name).collect()
}

async fn a_chain_honours_requirements_yanks_and_early_versions(engine: Engine) {
    let registry = Registry::new(engine).await;
    let owner = registry.publisher("one").await;
    for version in ["1.0.0", "1.2.0", "1.10.0", "2.0.0", "2.1.0-beta.2", "2.1.0-beta.11"] {
        owner.publish(&Package::running_on("base", version, "python_runtime")).await.expect_status(201);
    }
    for (id, executor) in [("mid", "base@^1"), ("early", "base@>=2.1.0-beta.1"), ("odd", "base@^9")] {
        owner.publish(&Package::running_on(id, "1.0.0", executor)).await.expect_status(201);
    }
    owner.publish(&Package::running_on("top", "1.0.0", "mid")).await.expect_status(201);
    let nobody = registry.nobody();
    let at = |path: &str| format!("/v1/resolve/{path}");
    assert_eq!(versions(&nobody, &at("top")).await, ["top@1.0.0", "mid@1.0.0", "base@1.10.0"]);
    assert_eq!(versions(&nobody, &at("base")).await, ["base@2.0.0"]);
    assert_eq!(versions(&nobody, &at("base?requirement=%5E1")).await, ["base@1.10.0"]);
    assert_eq!(versions(&nobody, &at("base?requirement=%3C1.10")).await, ["base@1.2.0"]);
    assert_eq!(versions(&nobody, &at("early")).await, ["early@1.0.0", "base@2.1.0-beta.11"]);
    let chain = nobody.get(&at("odd")).await.expect_status(200);
    assert_eq!(chain["beyond"], json!({"tool_id": "base", "requirement": "^9", "is_known": true}));
    nobody.get(&at("base?requirement=%5E9")).await.expect_fault(404, "not_found");
    nobody.get(&at("base?requirement=wat")).await.expect_fault(400, "usage");

    let yank = json!({"reason": "broken"});
    let yanked = owner.json("PUT", "/v1/tools/base/versions/1.10.0/yanked", &yank).await.expect_status(200);
    assert_eq!(yanked["yanked"], "broken");
    assert_eq!(versions(&nobody, &at("top")).await, ["top@1.0.0", "mid@1.0.0", "base@1.2.0"]);
    // Who names it has it from a lockfile.
    assert_eq!(versions(&nobody, &at("base?requirement=%3D1.10.0")).await, ["base@1.10.0"]);
    nobody.get("/v1/tools/base/versions/1.10.0").await.expect_status(200);
    let back = json!({"reason": null});
    owner.json("PUT", "/v1/tools/base/versions/1.10.0/yanked", &back).await.expect_status(200);
    assert_eq!(versions(&nobody, &at("top")).await[2], "base@1.10.0");
    // The newest is an early one only where there is no other.
    for version in ["2.0.0", "1.10.0", "1.2.0", "1.0.0"] {
        let tool = nobody.get("/v1/tools/base").await.expect_status(200);
        assert_eq!(tool["latest"], version);
        let path = format!("/v1/tools/base/versions/{version}/yanked");
        owner.json("PUT", &path, &yank).await.expect_status(200);
    }
    assert_eq!(nobody.get("/v1/tools/base").await.expect_status(200)["latest"], "2.1.0-beta.11");
    // Where all that would do was yanked, that is told; where there never was any, that.
    for (requirement, told) in [
        ("%5E1", "every version of `base` that is `^1` was yanked"),
        ("%5E9", "no version of `base` is `^9`"),
    ] {
        let answer = nobody.get(&at(&format!("base?requirement={requirement}"))).await;
        assert_eq!(answer.expect_fault(404, "not_found")["message"], told);
    }
}

async fn chains_that_have_no_end_are_refused(engine: Engine) {
    let registry = Registry::new(engine).await;
    let owner = registry.publisher("one").await;
    for (id, executor) in [("a_b", "axb"), ("axb", "c"), ("c", "a_b"), ("own", "own")] {
        owner.publish(&Package::running_on(id, "1.0.0", executor)).await.expect_status(201);
    }
    owner.get("/v1/resolve/a_b").await.expect_fault(422, "cycle");
    owner.get("/v1/resolve/own").await.expect_fault(422, "cycle");
    for depth in 0..12 {
        let package = Package::running_on(&format!("d{depth}"), "1.0.0", &format!("d{}", depth + 1));
        owner.publish(&package).await.expect_status(201);
    }
    owner.get("/v1/resolve/d0").await.expect_fault(422, "too_deep");
    let chain = owner.get("/v1/resolve/d2").await.expect_status(200);
    assert_eq!(chain["links"].as_array().unwrap().len(), 10);
    assert_eq!(chain["beyond"]["tool_id"], "d12");
}

async fn versions_never_change(engine: Engine) {
    let registry = Registry::new(engine).await;
    let owner = registry.publisher("one").await;
    let first = Package::new("greet", "1.0.0");
    owner.publish(&first).await.expect_status(201);
    for other in [
        first.clone(),
        first.clone().with("more.txt", b"more"),
        Package { version: "1.0.0+build".parse().unwrap(), ..Package::new("greet", "1.0.0+build") },
    ] {
        let fault = owner.publish(&other).await.expect_fault(409, "version_conflict");
        assert_eq!(fault["details"]["integrity"], json!(first.integrity()));
    }
    let there = owner.get("/v1/tools/greet/versions/1.0.0").await.expect_status(200);
    assert_eq!(there["integrity"], json!(first.integrity()));
    owner.send("DELETE", "/v1/tools/greet/versions/1.0.0", &[], b"").await.expect_fault(405, "usage");
}

async fn exactly_one_of_many_publishers_wins(engine: Engine) {
    let registry = Registry::new(engine).await;
    let owner = registry.publisher("one").await;
    let packages: Vec<Package> =
        (0..200).map(|n: u32| Package::new("busy", "1.0.0").with("n.txt", &n.to_be_bytes())).collect();
    for package in &packages {
        owner.upload(package).await;
    }
    let mut tasks = Vec::new();
    for package in packages.clone() {
        let owner = owner.clone();
        tasks.push(tokio::spawn(
            async move { owner.json("PUT", &package.path(), &package.publication()).await },
        ));
    }
    let (mut won, mut lost) = (Vec::new(), 0);
    for task in tasks {
        let reply = task.await.unwrap();
        match reply.status {
            201 => won.push(reply.value()["integrity"].clone()),
            409 => lost += 1,
            other => panic!("{other}: {}", reply.value()),
        }
    }
    assert_eq!((won.len(), lost), (1, 199));
    let there = owner.get("/v1/tools/busy/versions/1.0.0").await.expect_status(200);
    assert_eq!(there["integrity"], won[0]);
    assert_eq!(there["files"].as_array().unwrap().len(), 3);

    // Different versions at once: all of them, and the newest is the newest.
    let mut tasks = Vec::new();
    for minor in 1..40 {
        let (owner, package) = (owner.clone(), Package::new("busy", &format!("1.{minor}.0")));
        tasks.push(tokio::spawn(async move { owner.publish(&package).await.expect_status(201) }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let tool = owner.get("/v1/tools/busy").await.expect_status(200);
    assert_eq!((&tool["latest"], tool["versions"].as_array().unwrap().len()), (&json!("1.39.0"), 40));
}

async fn a_try_that_is_made_again_is_the_same_try(engine: Engine) {
    let registry = Registry::new(engine).await;
    let owner = registry.publisher("one").await;
    let package = Package::new("greet", "1.0.0");
    owner.upload(&package).await;
    let publish = |package: &Package, attempt: &str| {
        let headers = [("content-type", "application/json"), ("idempotency-key", attempt)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let (owner, path, body) = (owner.clone(), package.path(), package.publication().to_string());
        async move {
            let headers: Vec<(&str, &str)> =
                headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            owner.send("PUT", &path, &headers, body.as_bytes()).await
        }
    };
    let first = publish(&package, "try-1").await.expect_status(201);
    assert_eq!(publish(&package, "try-1").await.expect_status(200), first);
    publish(&package, "try-2").await.expect_fault(409, "version_conflict");
    let other = package.clone().with("more.txt", b"more");
    owner.upload(&other).await;
    publish(&other, "try-1").await.expect_fault(409, "version_conflict");
    publish(&package, &"x".repeat(300)).await.expect_fault(400, "usage");
}

async fn who_sees_what(engine: Engine) {
    let registry = Registry::new(engine).await;
    let (owner, other_one, nobody) =
        (registry.publisher("one").await, registry.publisher("other").await, registry.nobody());
    let secret = Package::described("team.secret", "1.0.0", "python_runtime", "launches rockets quietly");
    let secret = secret.visible("private").with("secret.txt", b"nobody else has these bytes");
    let hidden =
        Package::described("team.hidden", "1.0.0", "team.secret", "launches rockets").visible("unlisted");
    owner.publish(&secret).await.expect_status(201);
    owner.publish(&hidden).await.expect_status(201);
    let bytes = format!("/v1/blobs/{}", Digest::of(b"nobody else has these bytes"));
    let paths =
        ["/v1/tools/team.secret", "/v1/resolve/team.secret", "/v1/tools/team.secret/versions/1.0.0", &bytes];
    for path in paths {
        for stranger in [&other_one, &nobody] {
            stranger.get(path).await.expect_fault(404, "not_found");
        }
        for friend in [&owner, &registry.admin] {
            let reply = friend.get(path).await;
            assert_eq!(reply.status, 200, "{path}");
            assert!(reply.header("cache-control").unwrap().starts_with("private"), "{path}");
        }
    }
    // An unlisted one by whoever knows its name; what it runs on stays private.
    let chain = nobody.get("/v1/resolve/team.hidden").await.expect_status(200);
    assert_eq!(chain["beyond"], json!({"tool_id": "team.secret", "requirement": null, "is_known": false}));
    assert_eq!(versions(&owner, "/v1/resolve/team.hidden").await, ["team.hidden@1.0.0", "team.secret@1.0.0"]);
    let found = |client: Client| async move {
        let found = client.get("/v1/search?q=launch+rockets").await.expect_status(200);
        found["hits"].as_array().unwrap().len()
    };
    assert_eq!(
        (found(nobody.clone()).await, found(other_one.clone()).await, found(owner.clone()).await),
        (0, 0, 2)
    );
    // What is not theirs cannot be changed, and what cannot be seen is not there.
    let open = json!({"visibility": "public"});
    other_one.json("PATCH", "/v1/tools/team.secret", &open).await.expect_fault(404, "not_found");
    other_one.json("PATCH", "/v1/tools/team.hidden", &open).await.expect_fault(403, "denied");
    let tool = owner.json("PATCH", "/v1/tools/team.secret", &open).await.expect_status(200);
    assert_eq!(tool["visibility"], "public");
    assert_eq!(nobody.get(&bytes).await.status, 200);
    assert_eq!(found(nobody.clone()).await, 1);
    owner.json("PATCH", "/v1/tools/team.secret", &json!({"visibility": "private"})).await.expect_status(200);
    nobody.get(&bytes).await.expect_fault(404, "not_found");
    assert_eq!(found(nobody.clone()).await, 0);
    // A version of a tool that is there does not change who sees it.
    owner.publish(&Package::new("team.secret", "1.1.0").visible("public")).await.expect_status(201);
    nobody.get("/v1/tools/team.secret").await.expect_fault(404, "not_found");
}

async fn who_may_do_what(engine: Engine) {
    let registry = Registry::new(engine).await;
    let (owner, other_one, nobody) =
        (registry.publisher("one").await, registry.publisher("other").await, registry.nobody());
    let reader = registry.user("one", &["read"]).await;
    let package = Package::new("team.greet", "1.0.0");
    nobody.json("PUT", &package.path(), &package.publication()).await.expect_fault(401, "denied");
    reader.json("PUT", &package.path(), &package.publication()).await.expect_fault(403, "denied");
    reader.put_blob(b"x").await.expect_fault(403, "denied");
    let stranger = Client { token: Some("kiwi_nonsense".into()), ..nobody.clone() };
    let refused = stranger.get("/v1/status").await;
    refused.expect_fault(401, "denied");
    assert!(refused.header("www-authenticate").unwrap().contains("invalid_token"));
    owner.publish(&package).await.expect_status(201);
    // A namespace belongs to who was first in it, and so does a name without one.
    other_one.publish(&Package::new("team.other", "1.0.0")).await.expect_fault(403, "denied");
    other_one.publish(&Package::new("team.greet", "1.0.1")).await.expect_fault(403, "denied");
    owner.publish(&Package::new("plain", "1.0.0").visible("private")).await.expect_status(201);
    other_one.publish(&Package::new("plain", "1.0.1")).await.expect_fault(403, "denied");
    let yank = json!({"reason": "no"});
    other_one
        .json("PUT", "/v1/tools/team.greet/versions/1.0.0/yanked", &yank)
        .await
        .expect_fault(403, "denied");
    other_one
        .json("PUT", "/v1/tools/plain/versions/1.0.0/yanked", &yank)
        .await
        .expect_fault(404, "not_found");
    registry.admin.publish(&Package::new("team.other", "1.0.0")).await.expect_status(201);
    for reserved in ["kiwi.new", "filesystem.read", "subprocess"] {
        owner.publish(&Package::new(reserved, "1.0.0")).await.expect_fault(403, "denied");
    }
    for path in ["/v1/tokens", "/v1/lockfiles/team"] {
        nobody.get(path).await.expect_fault(401, "denied");
    }
    owner.get("/v1/tokens").await.expect_fault(403, "denied");
    let who = owner.get("/v1/whoami").await.expect_status(200);
    assert_eq!(who, json!({"user": "one", "scopes": ["read", "publish"], "namespaces": ["team"]}));
}

async fn tokens_are_made_listed_and_ended(engine: Engine) {
    let registry = Registry::new(engine).await;
    let wanted = json!({"user": "one", "scopes": ["publish", "read", "publish"], "days": 30});
    let made = registry.admin.json("POST", "/v1/tokens", &wanted).await.expect_status(201);
    let token = made["token"].as_str().unwrap();
    assert!(token.starts_with("kiwi_") && token.len() == 48, "{token}");
    assert!(made["expires_at"].is_string());
    let listed = registry.admin.get("/v1/tokens").await.expect_status(200);
    assert_eq!(listed["tokens"][0]["id"], made["id"]);
    assert_eq!(listed["tokens"][0]["scopes"], json!(["read", "publish"]));
    assert!(!listed.to_string().contains(token));
    let owner = Client { token: Some(token.to_owned()), ..registry.admin.clone() };
    owner.get("/v1/whoami").await.expect_status(200);
    let path = format!("/v1/tokens/{}", made["id"].as_str().unwrap());
    registry.admin.send("DELETE", &path, &[], b"").await.expect_status(204);
    owner.get("/v1/whoami").await.expect_fault(401, "denied");
    registry.admin.send("DELETE", &path, &[], b"").await.expect_fault(404, "not_found");
    for bad in [
        json!({"user": "Ann", "scopes": ["read"]}),
        json!({"user": "one", "scopes": []}),
        json!({"user": "one", "scopes": ["read"], "days": 0}),
        json!({"user": "one", "scopes": ["root"]}),
        json!({"user": "one", "scopes": ["read"], "more": 1}),
    ] {
        registry.admin.json("POST", "/v1/tokens", &bad).await.expect_fault(422, "usage");
    }
}

async fn namespaces_have_owners(engine: Engine) {
    let registry = Registry::new(engine).await;
    let (owner, other_one) = (registry.publisher("one").await, registry.publisher("other").await);
    owner.get("/v1/namespaces/team").await.expect_fault(404, "not_found");
    let claimed = owner.send("PUT", "/v1/namespaces/team", &[], b"").await.expect_status(200);
    assert_eq!(claimed, json!({"name": "team", "owners": ["one"]}));
    owner.send("PUT", "/v1/namespaces/team", &[], b"").await.expect_status(200);
    other_one.send("PUT", "/v1/namespaces/team", &[], b"").await.expect_fault(403, "denied");
    other_one.send("PUT", "/v1/namespaces/team/owners/other", &[], b"").await.expect_fault(403, "denied");
    owner.send("PUT", "/v1/namespaces/team/owners/eve", &[], b"").await.expect_fault(404, "not_found");
    let owners = owner.send("PUT", "/v1/namespaces/team/owners/other", &[], b"").await.expect_status(200);
    assert_eq!(owners["owners"], json!(["one", "other"]));
    other_one.publish(&Package::new("team.bobs", "1.0.0")).await.expect_status(201);
    other_one.send("DELETE", "/v1/namespaces/team/owners/one", &[], b"").await.expect_status(200);
    owner.publish(&Package::new("team.anns", "1.0.0")).await.expect_fault(403, "denied");
    other_one.send("DELETE", "/v1/namespaces/team/owners/other", &[], b"").await.expect_fault(409, "denied");
    for reserved in ["kiwi", "mcp"] {
        owner.send("PUT", &format!("/v1/namespaces/{reserved}"), &[], b"").await.expect_fault(403, "denied");
    }
    owner.send("PUT", "/v1/namespaces/No", &[], b"").await.expect_fault(422, "usage");
}

async fn lockfiles_are_shared_without_losing_any(engine: Engine) {
    let registry = Registry::new(engine).await;
    let (owner, other_one) = (registry.publisher("one").await, registry.publisher("other").await);
    let path = "/v1/lockfiles/team/data/team.greet@1.0.0";
    let change =
        |number: i64, replaces: Option<u64>| json!({"lockfile": {"n": number}, "replaces": replaces});
    assert_eq!(owner.get("/v1/lockfiles/team").await.expect_status(200), json!({"lockfiles": []}));
    let first = owner.json("PUT", path, &change(1, None)).await.expect_status(200);
    assert_eq!((&first["key"], &first["user"]), (&json!("data/team.greet@1.0.0"), &json!("one")));
    let fault = other_one.json("PUT", path, &change(2, None)).await.expect_fault(409, "version_conflict");
    assert_eq!(fault["details"]["revision"], first["revision"]);
    let revision = first["revision"].as_u64();
    let second = other_one.json("PUT", path, &change(2, revision)).await.expect_status(200);
    owner.json("PUT", path, &change(3, revision)).await.expect_fault(409, "version_conflict");
    let set = owner.get("/v1/lockfiles/team").await.expect_status(200);
    assert_eq!(set["lockfiles"], json!([second]));
    // Of many who replace the same one, one does.
    let mut tasks = Vec::new();
    for number in 0..20 {
        let (owner, body) = (owner.clone(), change(number, second["revision"].as_u64()));
        tasks.push(tokio::spawn(async move { owner.json("PUT", path, &body).await.status }));
    }
    let mut statuses = Vec::new();
    for task in tasks {
        statuses.push(task.await.unwrap());
    }
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    owner.send("DELETE", "/v1/lockfiles/team/data%2Fteam.greet%401.0.0", &[], b"").await.expect_status(204);
    owner.send("DELETE", path, &[], b"").await.expect_fault(404, "not_found");
    // One that came back is another one.
    let again = owner.json("PUT", path, &change(1, None)).await.expect_status(200);
    assert!(again["revision"].as_u64() > second["revision"].as_u64());
    for bad in ["team/../x@1", "team/a//b", "team/.hidden", ".team/a@1", "team/a%5Cb"] {
        owner.json("PUT", &format!("/v1/lockfiles/{bad}"), &change(1, None)).await.expect_fault(400, "usage");
    }
    owner.json("PUT", path, &json!({"lockfile": 1, "replaces": null})).await.expect_fault(422, "usage");
}

async fn large_blobs_come_back_whole(engine: Engine) {
    let registry = Registry::new(engine).await;
    let owner = registry.publisher("one").await;
    let bytes = |length: u32| -> Vec<u8> {
        (0..length).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
    };
    let package = Package::new("large", "1.0.0")
        .with("none", b"")
        .with("small", &bytes(128 << 10))
        .with("edge", &bytes((128 << 10) + 1))
        .with("piece", &bytes(1 << 20))
        .with("pieces", &bytes((3 << 20) + 7));
    owner.publish(&package).await.expect_status(201);
    // The same bytes again are no trouble.
    owner.upload(&package).await;
    for (path, bytes, _) in &package.files {
        let reply = registry.nobody().get(&format!("/v1/blobs/{}", Digest::of(bytes))).await;
        assert_eq!(
            (reply.status, reply.body.len(), &reply.body == bytes),
            (200, bytes.len(), true),
            "{path}"
        );
    }
    let head = owner.send("HEAD", &format!("/v1/blobs/{}", Digest::of(&bytes(1 << 20))), &[], b"").await;
    assert_eq!((head.status, head.header("content-length"), head.body.len()), (200, Some("1048576"), 0));
}

async fn knowing_a_digest_is_not_having_the_bytes(engine: Engine) {
    let registry = Registry::new(engine).await;
    let (owner, other_one) = (registry.publisher("one").await, registry.publisher("other").await);
    let secret = Package::new("team.secret", "1.0.0").with("key", b"hush").visible("private");
    owner.publish(&secret).await.expect_status(201);
    let question = json!({"digests": [Digest::of(b"hush"), Digest::of(b"other")]});
    let missing = owner.json("POST", "/v1/blobs/missing", &question).await.expect_status(200);
    assert_eq!(missing, json!({"digests": [Digest::of(b"other")]}));
    let missing = other_one.json("POST", "/v1/blobs/missing", &question).await.expect_status(200);
    assert_eq!(missing, question);
    // Naming the digest in a version of one's own does not make it readable.
    let thief = Package::new("thief", "1.0.0").with("key", b"hush");
    for (path, bytes, _) in &thief.files {
        if path != "key" {
            other_one.put_blob(bytes).await.expect_status(204);
        }
    }
    let fault = other_one
        .json("PUT", &thief.path(), &thief.publication())
        .await
        .expect_fault(422, "missing_requirement");
    assert_eq!(fault["details"]["missing"], json!([Digest::of(b"hush")]));
    other_one.get(&format!("/v1/blobs/{}", Digest::of(b"hush"))).await.expect_fault(404, "not_found");
    // Nor is an upload that no version uses.
    other_one.put_blob(b"alone").await.expect_status(204);
    other_one.get(&format!("/v1/blobs/{}", Digest::of(b"alone"))).await.expect_fault(404, "not_found");
}

async fn search_finds_by_name_words_and_meaning(engine: Engine) {
    let registry = Registry::new(engine).await;
    let owner = registry.publisher("one").await;
    for (id, description) in [
        ("team.weather", "tells the weather forecast of a city"),
        ("team.resize", "makes a picture smaller"),
        ("team.mail", "sends an e-mail to somebody"),
        ("team.convert", "turns amounts of money from one currency into another"),
        ("team.naive", "prüft naïve Texte"),
    ] {
        owner
            .publish(&Package::described(id, "1.0.0", "python_runtime", description))
            .await
            .expect_status(201);
    }
    let nobody = registry.nobody();
    let first = |query: &'static str| {
        let nobody = nobody.clone();
        async move {
            let found = nobody.get(&format!("/v1/search?q={query}")).await.expect_status(200);
            found["hits"][0]["tool_id"].as_str().unwrap_or("nothing").to_owned()
        }
    };
    assert_eq!(first("team.mail").await, "team.mail");
    assert_eq!(first("forecast").await, "team.weather");
    assert_eq!(first("shrink+image").await, "team.resize");
    assert_eq!(first("exchange+rate").await, "team.convert");
    assert_eq!(first("naive").await, "team.naive");
    // Signs that mean something to an engine mean nothing in a question.
    for odd in ["%22+OR+*+%27+%3A%26%7C%21+NEAR(", "%27%29%3B+DROP+TABLE+tools%3B--", "%00", "*", "%25_%5C"] {
        nobody.get(&format!("/v1/search?q={odd}")).await.expect_status(200);
    }
    assert_eq!(first("%22*%27%3A%26%7C%21%28").await, "nothing");
    // What is found is the newest version, and nothing once all are yanked.
    let newer = Package::described("team.mail", "2.0.0", "python_runtime", "delivers telegrams");
    owner.publish(&newer).await.expect_status(201);
    let found = nobody.get("/v1/search?q=telegrams&limit=1").await.expect_status(200);
    let hit = &found["hits"][0];
    assert_eq!((&hit["version"], &hit["integrity"]), (&json!("2.0.0"), &json!(newer.integrity())));
    assert_eq!(found["hits"].as_array().unwrap().len(), 1);
    for version in ["2.0.0", "1.0.0"] {
        let path = format!("/v1/tools/team.mail/versions/{version}/yanked");
        owner.json("PUT", &path, &json!({"reason": "old"})).await.expect_status(200);
    }
    let found = nobody.get("/v1/search?q=team.mail").await.expect_status(200);
    assert!(!found.to_string().contains("team.mail"), "{found}");
    for bad in
        ["", "?q=a&limit=0", "?q=a&limit=201", "?q=a&q=b", "?q=a&x=1", &format!("?q={}", "a".repeat(1001))]
    {
        nobody.get(&format!("/v1/search{bad}")).await.expect_fault(400, "usage");
    }
}

async fn several_servers_share_one_database(engine: Engine) {
    if engine == Engine::Sqlite {
        // Two processes may share a file; many machines share PostgreSQL.
        return two_servers(engine, 2).await;
    }
    two_servers(engine, 3).await;
}

async fn two_servers(engine: Engine, count: usize) {
    let ground = support::Ground::new(engine).await;
    let mut starting = Vec::new();
    for _ in 0..count {
        let mut options = ground.options();
        options.blobs = Some(ground.folder.path().join("blobs"));
        starting.push(ground.serve(options));
    }
    // All at once, on an empty database.
    let mut servers = Vec::new();
    for server in starting {
        servers.push(server.await);
    }
    for (number, server) in servers.iter().enumerate() {
        let package = Package::new(&format!("team.n{number}"), "1.0.0").with("data", &vec![7; 300 << 10]);
        server.publish(&package).await.expect_status(201);
    }
    for server in &servers {
        for number in 0..count {
            server.get(&format!("/v1/resolve/team.n{number}")).await.expect_status(200);
        }
        let found = server.get("/v1/search?q=something+useful").await.expect_status(200);
        assert_eq!(found["hits"].as_array().unwrap().len(), count);
        assert_eq!(server.get(&format!("/v1/blobs/{}", Digest::of(&vec![7; 300 << 10]))).await.status, 200);
    }
    let mut tasks = Vec::new();
    for number in 0..60_u8 {
        let server = servers[usize::from(number) % count].clone();
        let package = Package::new("team.race", "1.0.0").with("n", &[number]);
        tasks.push(tokio::spawn(async move { server.publish(&package).await.status }));
    }
    let mut won = 0;
    for task in tasks {
        match task.await.unwrap() {
            201 => won += 1,
            other => assert_eq!(other, 409),
        }
    }
    assert_eq!(won, 1);
}
