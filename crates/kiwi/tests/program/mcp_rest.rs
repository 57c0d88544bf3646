//! A server that nobody asks anything rests: it reads nothing, and all the same it shows what changes.

use crate::support::TestEnvironment;
use crate::support::mcp::{Pipe, trusted};
use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// Longer than two looks at what clients are shown.
const REST: Duration = Duration::from_secs(12);
const PATIENCE: Duration = Duration::from_mins(2);

fn script(says: &str) -> String {
    format!(
        "#!/usr/bin/env bash\n# kiwi: version: \"1.0.0\"\n# kiwi: description: Says {says}\necho {says}\n"
    )
}

/// Waits until nobody has opened a file for a while.
fn wait_for_rest(file: &Path) {
    let opened = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
    add_watch(&opened, file, WatchFlags::OPEN).unwrap();
    let (begun, mut since) = (Instant::now(), Instant::now());
    while since.elapsed() < REST {
        assert!(begun.elapsed() < PATIENCE, "it is read again and again");
        if rustix::io::read(&opened, &mut [0; 4096]).is_ok() {
            since = Instant::now();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Asks for a list until it has this.
fn wait_for(pipe: &mut Pipe, list: &str, field: &str, wanted: &str) {
    let begun = Instant::now();
    loop {
        let listed = pipe.request(&format!("{list}/list"), json!({}));
        let items: &Vec<Value> = listed["result"][list].as_array().unwrap();
        if items.iter().any(|item| item[field] == wanted) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{listed:#}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn who_rests_reads_nothing_and_shows_what_changes() {
    let env = TestEnvironment::new();
    let tool = env.write("tools/say.sh", script("one"));
    trusted(&env);
    let mut pipe = Pipe::old(&env, &["--direct"], json!({}));
    wait_for(&mut pipe, "tools", "description", "Says one");
    wait_for_rest(&tool);
    assert_eq!(pipe.call("say", json!({}))["content"][0]["text"], "one\n");
    std::fs::write(&tool, script("two")).unwrap();
    assert_eq!(pipe.call("say", json!({}))["content"][0]["text"], "two\n");
    wait_for(&mut pipe, "tools", "description", "Says two");
    env.write("directives/go.md", "<directive name=\"go\" version=\"1.0.0\"><metadata><description>Go</description></metadata><process><step name=\"go\"><action>Go.</action></step></process></directive>");
    wait_for(&mut pipe, "prompts", "name", "go");
    env.write("knowledge/red.md", "---\nid: red\ntitle: Red\n---\nRed is warm.\n");
    wait_for(&mut pipe, "resources", "name", "red");
    env.write_user("tools/mine.sh", script("mine"));
    wait_for(&mut pipe, "tools", "name", "mine");
    std::fs::remove_file(tool).unwrap();
    let begun = Instant::now();
    while pipe.request("tools/list", json!({}))["result"].to_string().contains("Says two") {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(pipe.leave(), Some(0));
}

/// Of what is written behind a link, the kernel tells nobody who watches the link.
#[test]
fn what_lies_behind_a_link_is_looked_at_again() {
    let env = TestEnvironment::new();
    let behind = env.write("elsewhere/say.sh", script("one"));
    std::fs::create_dir_all(env.project().join(".ai/tools")).unwrap();
    std::os::unix::fs::symlink("../elsewhere/say.sh", env.project().join(".ai/tools/say.sh")).unwrap();
    trusted(&env);
    let mut pipe = Pipe::old(&env, &["--direct"], json!({}));
    wait_for(&mut pipe, "tools", "description", "Says one");
    // Until a process without links would rest.
    std::thread::sleep(REST);
    std::fs::write(behind, script("two")).unwrap();
    wait_for(&mut pipe, "tools", "description", "Says two");
    assert_eq!(pipe.leave(), Some(0));
}
