//! Secrets at rest: encrypted, private, never lost between two writers.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::Ground;
use jiff::Timestamp;
use kiwi_model::{ErrorKind, Explain as _, Secret};
use kiwi_space::{Credential, Credentials, Refresh};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

fn plain(value: &str) -> Credential {
    Credential::plain(Secret::new(value), Timestamp::UNIX_EPOCH)
}

fn store(ground: &Ground) -> Credentials {
    ground.spaces().credentials().expect("user space")
}

#[test]
fn a_secret_comes_back_and_is_nowhere_in_the_clear() {
    let ground = Ground::new();
    let store = store(&ground);
    assert_eq!(store.get("token").expect("empty"), None);
    assert!(!ground.user_ai("credentials").exists(), "reading makes nothing");
    let token = Credential {
        expires_at: Some("2026-01-01T00:00:00Z".parse().expect("time")),
        refresh: Some(Refresh {
            token_url: "https://id.test/token".into(),
            client_id: "kiwi".into(),
            client_secret: Some(Secret::new("CLIENT-SECRET-1")),
            token: Some(Secret::new("REFRESH-SECRET-1")),
        }),
        scopes: vec!["repo".into()],
        ..plain("ACCESS-SECRET-1")
    };
    assert!(!store.set("token", token.clone()).expect("set"));
    assert!(!store.set("other", plain("OTHER-SECRET-1")).expect("set"));
    assert_eq!(store.get("token").expect("stored"), Some(token));
    assert!(store.set("token", plain("ACCESS-SECRET-2")).expect("set"), "there was one");
    let mut names: Vec<String> = store.all().expect("all").into_keys().collect();
    names.sort();
    assert_eq!(names, ["other", "token"]);
    for entry in std::fs::read_dir(ground.user_ai("credentials")).expect("folder") {
        let path = entry.expect("entry").path();
        let mode = std::fs::metadata(&path).expect("metadata").mode();
        assert_eq!(mode & 0o777, 0o600, "{}", path.display());
        let bytes = std::fs::read(&path).expect("file");
        let text = String::from_utf8_lossy(&bytes);
        for secret in ["ACCESS-SECRET", "REFRESH-SECRET", "CLIENT-SECRET", "OTHER-SECRET"] {
            assert!(!text.contains(secret), "{}", path.display());
        }
    }
    assert!(store.remove("token").expect("removed") && !store.remove("token").expect("gone"));
}

#[test]
fn eyes_of_others_a_lost_key_and_nonsense_are_refused_with_what_to_do() {
    let ground = Ground::new();
    let store = store(&ground);
    store.set("token", plain("x")).expect("set");
    let (file, key) = (ground.user_ai("credentials/store.age"), ground.user_ai("credentials/identity.txt"));
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("mode");
    };
    for path in [&file, &key] {
        mode(path, 0o644);
        let error = store.get("token").expect_err("exposed");
        assert_eq!(error.kind(), ErrorKind::MissingRequirement);
        assert!(error.hint().expect("hint").contains("chmod 600"), "{error}");
        mode(path, 0o600);
    }
    let good = std::fs::read(&file).expect("store");
    std::fs::write(&file, &good[..good.len() - 1]).expect("cut");
    assert!(store.get("token").expect_err("cut").to_string().contains("cannot be read"));
    std::fs::write(&file, &good).expect("back");
    let text = std::fs::read(&key).expect("key");
    std::fs::remove_file(&key).expect("removed");
    let error = store.set("more", plain("y")).expect_err("no key");
    assert!(error.to_string().contains("identity"), "{error}");
    std::fs::write(&key, text).expect("back");
    mode(&key, 0o600);
    assert!(store.get("token").expect("stored").is_some(), "nothing was lost");
    for name in ["", "1x", "a b", "a=b", "ü", "../x"] {
        assert_eq!(store.set(name, plain("x")).expect_err(name).kind(), ErrorKind::Usage, "{name}");
    }
}

#[test]
fn writers_at_once_lose_nothing() {
    let ground = Ground::new();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let store = store(&ground);
            scope.spawn(move || {
                for round in 0..5 {
                    store.set(&format!("n{number}_{round}"), plain("v")).expect("set");
                }
            });
        }
    });
    assert_eq!(store(&ground).all().expect("all").len(), 40);
}
