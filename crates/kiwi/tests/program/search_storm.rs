//! Indexing that is killed, and indexing that several do at once.

use crate::support::TestEnvironment;
use std::time::Duration;

fn tools(env: &TestEnvironment, round: usize, count: usize) {
    for number in 0..count {
        let text = format!(
            "# kiwi: version: \"1.0.0\"\n# kiwi: description: Tool {number} of round {round} turns things over\necho\n"
        );
        env.write(&format!("tools/many/t{}/tool_{number}.sh", number % 7), text);
    }
}

#[test]
fn killed_at_any_moment_it_opens_again_and_ends_up_whole() {
    let env = TestEnvironment::new();
    for round in 0..crate::support::rounds(200) {
        tools(&env, round, 120);
        if round % 5 == 4 {
            let _ = std::fs::remove_dir_all(env.project().join(".ai/tools/many/t3"));
        }
        let mut child = env.command(&["index", "build"]).stdout(std::process::Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis((round as u64 * 37) % 190));
        child.kill().unwrap();
        child.wait().unwrap();
        let built = env.run(&["index", "build"]);
        assert_eq!(built.code, 0, "round {round}: {}", built.stderr);
        assert!(!built.stderr.contains("damaged"), "round {round}: {}", built.stderr);
        let (code, verified) = env.json(&["index", "verify"]);
        assert_eq!(code, 0, "round {round}: {verified}");
    }
}

#[test]
fn several_at_once_come_to_the_same_as_one() {
    let env = TestEnvironment::new();
    tools(&env, 0, 300);
    let children: Vec<_> = (0..4)
        .map(|_| env.command(&["index", "build"]).stdout(std::process::Stdio::null()).spawn().unwrap())
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let (code, verified) = env.json(&["index", "verify"]);
    assert_eq!(code, 0, "{verified}");
    assert_eq!(verified["tiers"][0]["documents"], 300, "{verified}");
}
