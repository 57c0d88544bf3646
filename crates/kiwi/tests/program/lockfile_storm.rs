//! The store of lockfiles under fire: the program killed at any moment, and many of it at once.

use crate::support::{TestEnvironment, rounds};
use kiwi_model::lockfile::Lockfile;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

const TOOLS: usize = 6;

fn tool(env: &TestEnvironment, number: usize, content: &str) {
    let text = format!("# kiwi: version: 1.0.0\necho {content}\n");
    env.write(&format!("tools/c{}/t{number}.sh", number % 3), text);
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Every lockfile on disk, each of which must be whole.
fn lockfiles(env: &TestEnvironment) -> BTreeMap<String, Lockfile> {
    let folder = env.project().join(".ai/lockfiles");
    let all = files(&folder).into_iter().filter(|path| path.to_string_lossy().ends_with(".lock.json"));
    all.map(|path| {
        let text = std::fs::read_to_string(&path).unwrap();
        let lock =
            Lockfile::parse(&text).unwrap_or_else(|error| panic!("{}: {error}\n{text}", path.display()));
        (path.strip_prefix(&folder).unwrap().to_string_lossy().into_owned(), lock)
    })
    .collect()
}

fn listed(env: &TestEnvironment) -> BTreeSet<String> {
    let (code, out) = env.json(&["lockfile", "list"]);
    assert_eq!(code, 0, "{out:#}");
    let entries = out["lockfiles"].as_array().unwrap();
    assert!(entries.iter().all(|entry| entry["ok"] == true), "{out:#}");
    entries.iter().map(|entry| entry["path"].as_str().unwrap().to_owned()).collect()
}

fn age(env: &TestEnvironment, tool: &str) {
    let index = env.project().join(".ai/lockfiles/.index.json");
    let mut value: Value = serde_json::from_slice(&std::fs::read(&index).unwrap()).unwrap();
    for (key, entry) in value["lockfiles"].as_object_mut().unwrap() {
        if key.contains(tool) {
            entry["last_validated"] = "2020-01-01T00:00:00Z".into();
        }
    }
    std::fs::write(&index, value.to_string()).unwrap();
}

/// Starts the program, kills it after a while, and says whether it was still at it.
fn kill_after(env: &TestEnvironment, words: &[&str], delay: Duration) -> bool {
    let mut child = env.command(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(delay);
    child.kill().unwrap();
    child.wait().unwrap().code().is_none()
}

#[test]
fn killed_at_any_moment_no_lockfile_is_lost_or_half_written() {
    let env = TestEnvironment::new();
    (0..TOOLS).for_each(|number| tool(&env, number, "start"));
    assert_eq!(env.run(&["lockfile", "freeze", "--all"]).code, 0);
    let expected: BTreeSet<String> = lockfiles(&env).into_keys().collect();
    assert_eq!(expected.len(), TOOLS);
    let begun = Instant::now();
    assert_eq!(env.run(&["lockfile", "freeze", "--all"]).code, 0);
    let whole = begun.elapsed().max(Duration::from_millis(4)) * 2;

    let (mut kills, mut round) = (0, 0_u32);
    let wanted = rounds(500);
    while kills < wanted {
        round += 1;
        assert!(round < 20_000, "the program ends before it can be killed");
        // Through the whole run of the program, over and over, never twice at the same moment.
        let delay = whole * (round * 37 % 101) / 101;
        (0..TOOLS).for_each(|number| tool(&env, number, &format!("round-{round}")));
        let (words, may_lose): (&[&str], &str) = match round % 4 {
            0 => (&["lockfile", "freeze", "--all"], ""),
            1 => (&["lockfile", "update", "--all"], ""),
            2 => {
                age(&env, "t5@");
                (&["lockfile", "prune"], "t5@")
            }
            _ => {
                let _ = std::fs::remove_file(env.project().join(".ai/lockfiles/.index.json"));
                (&["lockfile", "list"], "")
            }
        };
        kills += usize::from(kill_after(&env, words, delay));
        let there = lockfiles(&env);
        let lost: Vec<&String> = expected
            .iter()
            .filter(|key| !there.contains_key(*key) && (may_lose.is_empty() || !key.contains(may_lose)))
            .collect();
        assert!(lost.is_empty(), "{words:?} in round {round} lost {lost:?}");
        assert_eq!(listed(&env), there.into_keys().collect(), "{words:?} in round {round}");
        if !may_lose.is_empty() {
            assert_eq!(env.run(&["lockfile", "freeze", "--all"]).code, 0);
        }
    }
    // Whoever writes next clears up, and everything can be agreed to again.
    tool(&env, 0, "end");
    assert_eq!(env.run(&["lockfile", "update", "--all"]).code, 0);
    assert_eq!(env.run(&["lockfile", "validate", "--all", "--strict"]).code, 0);
    let left: Vec<PathBuf> = files(&env.project().join(".ai/lockfiles"))
        .into_iter()
        .filter(|path| path.to_string_lossy().contains("/.new-"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn eight_processes_at_once_lose_nothing() {
    const PROCESSES: usize = 8;
    let env = TestEnvironment::new();
    let each = rounds(100).max(5);
    (0..PROCESSES).for_each(|number| tool(&env, number, "start"));
    assert_eq!(env.run(&["lockfile", "freeze", "--all"]).code, 0);
    std::thread::scope(|scope| {
        for number in 0..PROCESSES {
            let env = &env;
            scope.spawn(move || {
                let name = format!("t{number}");
                for round in 0..each {
                    tool(env, number, &format!("round-{round}"));
                    let frozen = env.run(&["lockfile", "freeze", &name]);
                    assert_eq!(frozen.code, 0, "{}", frozen.stderr);
                    let good = env.run(&["lockfile", "validate", &name, "--strict"]);
                    assert_eq!(good.code, 0, "{}\n{}", good.stdout, good.stderr);
                    assert_eq!(env.run(&["run", &name, "--locked"]).stdout, format!("round-{round}\n"));
                }
            });
        }
    });
    let there = lockfiles(&env);
    assert_eq!(there.len(), PROCESSES);
    assert_eq!(listed(&env), there.keys().cloned().collect());
    // The index says of each what its file says.
    let index = std::fs::read(env.project().join(".ai/lockfiles/.index.json")).unwrap();
    let index: Value = serde_json::from_slice(&index).unwrap();
    for (path, lock) in &there {
        let key = path.strip_suffix(".lock.json").unwrap();
        assert_eq!(index["lockfiles"][key]["chain_hash"], lock.chain_hash.as_str(), "{key}");
    }
    assert_eq!(env.run(&["lockfile", "validate", "--strict"]).code, 0);
}
