//! Servers that are killed while people publish and install: what was acknowledged is there, whole and once.

use crate::support::TestEnvironment;
use crate::support::registry::{Person, Registry, postgres};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const SERVERS: usize = 3;
const PUBLISHERS: usize = 2;

/// What a publisher was told: tool and version, and its integrity.
type Acknowledged = Mutex<BTreeMap<(String, String), String>>;

fn tool(number: usize, version: usize) -> String {
    format!(
        "# kiwi: version: \"1.0.{version}\"\n# kiwi: description: Tool {number}\necho {number} {version}\n"
    )
}

/// Asks one server after the other until one answers.
fn persistent(person: &Person, urls: &[String], words: &[&str], over: &AtomicBool) -> Option<(i32, Value)> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    loop {
        let url = &urls[NEXT.fetch_add(1, Ordering::Relaxed) % urls.len()];
        let mut command = person.command(&[words, &["--json"]].concat());
        let ran = crate::support::ran(&command.env("KIWI_REGISTRY", url).output().unwrap());
        let told: Value =
            serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{words:?}: {}", ran.stderr));
        if ran.code == 0 || told["error"]["kind"] != "upstream_unavailable" {
            return Some((ran.code, told));
        }
        if over.load(Ordering::Relaxed) {
            return None;
        }
    }
}

#[test]
fn servers_that_are_killed_lose_nothing() {
    let seconds = if std::env::var_os("KIWI_SOAK").is_some() { 60 } else { 6 };
    let ground = TestEnvironment::new();
    let database = postgres("storm");
    let mut servers: Vec<Registry> = (0..SERVERS).map(|_| Registry::start(&ground, &database)).collect();
    let urls: Vec<String> = servers.iter().map(|server| server.url.clone()).collect();
    let people: Vec<Person> =
        (0..PUBLISHERS).map(|number| Person::new(&servers[0], &format!("p{number}"), "publish")).collect();
    let reader = Person::new(&servers[0], "reader", "read");
    let (acknowledged, over) = (Acknowledged::default(), AtomicBool::new(false));
    let installs = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for (number, person) in people.iter().enumerate() {
            let (acknowledged, urls, over) = (&acknowledged, &urls, &over);
            scope.spawn(move || {
                for version in 0.. {
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                    let name = format!("tool_{number}");
                    person.env.write(&format!("tools/{name}.sh"), tool(number, version));
                    let Some((code, told)) = persistent(person, urls, &["publish", &name], over) else {
                        return;
                    };
                    // Cut off after it was written and asked again: it is there, exactly as it is here.
                    assert_eq!(code, 0, "{told}");
                    let integrity = told["integrity"].as_str().unwrap().to_owned();
                    acknowledged.lock().unwrap().insert((name, format!("1.0.{version}")), integrity);
                }
            });
        }
        {
            let (urls, over, installs, reader, acknowledged) =
                (&urls, &over, &installs, &reader, &acknowledged);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let known = acknowledged.lock().unwrap().keys().next_back().cloned();
                    let Some((name, version)) = known else { continue };
                    let ask = format!("{name}@{version}");
                    let Some((code, told)) = persistent(reader, urls, &["install", &ask], over) else {
                        return;
                    };
                    assert_eq!(code, 0, "{told}");
                    installs.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let begun = Instant::now();
        let mut turn = 0;
        while begun.elapsed() < Duration::from_secs(seconds) {
            std::thread::sleep(Duration::from_secs(1));
            let address = servers[turn % SERVERS].address().to_owned();
            servers[turn % SERVERS].kill();
            servers[turn % SERVERS] = Registry::start_at(&ground, &database, &address);
            turn += 1;
        }
        over.store(true, Ordering::Relaxed);
    });
    let acknowledged = acknowledged.into_inner().unwrap();
    assert!(acknowledged.len() > 3 && installs.load(Ordering::Relaxed) > 1, "{acknowledged:?}");
    // Everything that is there can be had whole; everything that was acknowledged is there, and once.
    let fresh = Person::new(&servers[0], "fresh", "read");
    for number in 0..PUBLISHERS {
        let name = format!("tool_{number}");
        let told = servers[0].get(&format!("/v1/tools/{name}"));
        let versions: Vec<&Value> = told["versions"].as_array().unwrap().iter().collect();
        let mut names: Vec<&str> = versions.iter().map(|it| it["version"].as_str().unwrap()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "a version is there twice: {told}");
        for version in versions {
            let (number, integrity) =
                (version["version"].as_str().unwrap(), version["integrity"].as_str().unwrap());
            let installed = fresh.json(&["install", &format!("{name}@{number}")], 0);
            assert_eq!(installed["installed"][0]["chain"][0]["integrity"], integrity);
        }
        let mine = acknowledged.iter().filter(|((tool, _), _)| *tool == name);
        for ((_, version), integrity) in mine {
            let there = told["versions"].as_array().unwrap().iter().find(|it| it["version"] == **version);
            assert_eq!(there.unwrap_or_else(|| panic!("{name}@{version} is lost"))["integrity"], **integrity);
        }
    }
}
