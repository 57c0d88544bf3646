//! `kiwi cache`: what is kept is listed, what nobody uses goes, and what is in use stays.

use crate::support::TestEnvironment;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

const DAY: Duration = Duration::from_hours(24);

/// An environment as a finished build leaves it.
fn keep(env: &TestEnvironment, name: &str, days: u32) -> PathBuf {
    let folder = env.home().join(".ai/cache/python").join(name);
    fs::create_dir_all(folder.join("lib")).unwrap();
    fs::write(folder.join("lib/code.py"), "x = 1\n").unwrap();
    let pin = format!("six==1.17.0 sha256:{}", "0".repeat(64));
    let complete = serde_json::json!({"interpreter": "3.11.7", "installed": [pin]});
    fs::write(folder.join(".complete"), complete.to_string()).unwrap();
    age(&folder.join(".complete"), days);
    folder
}

fn age(file: &Path, days: u32) {
    let time = SystemTime::now() - DAY * days;
    fs::File::open(file).unwrap().set_modified(time).unwrap();
}

/// Without a search path no container engine is found: those of this machine are somebody else's.
#[track_caller]
fn json(env: &TestEnvironment, words: &[&str]) -> (i32, Value) {
    let output = env.command(&[words, &["--json"]].concat()).env("PATH", "/nowhere").output().unwrap();
    let said = serde_json::from_slice(&output.stdout).expect("one JSON object");
    (output.status.code().unwrap(), said)
}

fn names(said: &Value, list: &str) -> Vec<(String, String)> {
    let name = |item: &Value| {
        let path = item["name"].as_str().unwrap();
        (item["kind"].as_str().unwrap().to_owned(), path.rsplit('/').next().unwrap().to_owned())
    };
    let mut names: Vec<_> = said[list].as_array().unwrap().iter().map(name).collect();
    names.sort();
    names
}

fn pair(kind: &str, name: &str) -> (String, String) {
    (kind.to_owned(), name.to_owned())
}

#[test]
fn what_was_not_used_for_long_goes_and_the_rest_stays() {
    let env = TestEnvironment::new();
    fs::create_dir_all(env.home().join(".ai")).unwrap();
    let (old, new) = (keep(&env, "old", 31), keep(&env, "new", 29));
    let unfinished = env.home().join(".ai/cache/node/half");
    fs::create_dir_all(&unfinished).unwrap();
    let interpreters = env.home().join(".ai/cache/interpreters");
    fs::create_dir_all(&interpreters).unwrap();
    fs::write(interpreters.join("py"), "Python 3.11.7\n").unwrap();
    let blobs = env.home().join(".ai/cache/registry/blobs/ab");
    fs::create_dir_all(&blobs).unwrap();
    let (unused, fetched) = (blobs.join("unused"), blobs.join("fetched"));
    fs::write(&unused, "bytes").unwrap();
    fs::write(&fetched, "bytes").unwrap();
    age(&unused, 40);
    let copy = env.tmp().join("kiwi-run-0123456789abcdef0123456789abcdef");
    fs::create_dir(&copy).unwrap();
    let other = env.tmp().join("kiwi-run-of-somebody");
    fs::create_dir(&other).unwrap();
    age(&copy, 2);

    let (code, listed) = json(&env, &["cache", "list"]);
    assert_eq!(code, 0);
    let all = vec![
        pair("environment", "new"),
        pair("environment", "old"),
        pair("fetched", "fetched"),
        pair("fetched", "unused"),
        pair("interpreter", "py"),
        pair("snapshot", "kiwi-run-0123456789abcdef0123456789abcdef"),
        pair("unfinished", "half"),
    ];
    assert_eq!(names(&listed, "items"), all);
    let text = env.command(&["cache", "list"]).env("PATH", "/nowhere").output().unwrap().stdout;
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains("python 3.11.7: six==1.17.0\n") && !text.contains("sha256"), "{text}");

    let (_, would) = json(&env, &["cache", "prune", "--dry-run"]);
    let going = vec![
        pair("environment", "old"),
        pair("fetched", "unused"),
        pair("snapshot", "kiwi-run-0123456789abcdef0123456789abcdef"),
        pair("unfinished", "half"),
    ];
    assert_eq!(names(&would, "pruned"), going);
    assert!(old.exists() && copy.exists() && unfinished.exists(), "a dry run removes nothing");
    let (_, pruned) = json(&env, &["cache", "prune"]);
    assert_eq!(names(&pruned, "pruned"), going);
    assert!(!old.exists() && !copy.exists() && !unfinished.exists());
    assert!(new.exists() && other.exists() && fetched.exists() && !unused.exists());
    let (_, pruned) = json(&env, &["cache", "prune", "--older-than", "28"]);
    assert_eq!(names(&pruned, "pruned"), vec![pair("environment", "new")]);
}

#[test]
fn what_is_in_use_stays() {
    let env = TestEnvironment::new();
    fs::create_dir_all(env.home().join(".ai")).unwrap();
    let (held, building) = (keep(&env, "held", 90), keep(&env, "building", 90));
    // A process that runs out of it.
    let mut process = std::process::Command::new("sleep")
        .arg("600")
        .env("NODE_PATH", held.join("node_modules"))
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    // Somebody who builds it.
    let lock = fs::File::create(building.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    let (_, pruned) = json(&env, &["cache", "prune", "--older-than", "0"]);
    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(names(&pruned, "pruned"), vec![]);
    drop(lock);
    let (_, pruned) = json(&env, &["cache", "prune", "--older-than", "0"]);
    assert_eq!(names(&pruned, "pruned"), vec![pair("environment", "building"), pair("environment", "held")]);
}

#[test]
fn a_build_whose_kiwi_is_killed_leaves_nothing() {
    let env = TestEnvironment::new();
    let (programs, started) = (env.tmp().join("programs"), env.tmp().join("started"));
    let search_path = std::env::var("PATH").unwrap();
    let node = std::env::split_paths(&search_path).map(|folder| folder.join("node")).find(|it| it.is_file());
    let node = node.expect("node is installed");
    for (name, script) in [
        ("node", format!("#!/bin/sh\nexec {} \"$@\"\n", node.display())),
        (
            "npm",
            format!("#!/bin/sh\nmkdir node_modules/ms && touch {} && exec sleep 60\n", started.display()),
        ),
    ] {
        crate::support::write(&programs.join(name), script);
        fs::set_permissions(programs.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    env.write("tools/never.js", "// kiwi: version: 1.0.0\n// kiwi: requires: [ms@2.1.3]\n");
    let mut command = env.command(&["run", "never"]);
    command.env("PATH", format!("{}:{search_path}", programs.display()));
    let mut kiwi = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("npm is at work", || started.exists());
    let folders = || {
        let kept = fs::read_dir(env.home().join(".ai/cache/node")).unwrap().flatten();
        kept.filter(|entry| entry.path().is_dir()).count()
    };
    assert_eq!(folders(), 1);
    kiwi.kill().unwrap();
    kiwi.wait().unwrap();
    wait_until("what it had built is gone", || folders() == 0);
}

#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let since = std::time::Instant::now();
    while !is_so() {
        assert!(since.elapsed() < Duration::from_secs(20), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
