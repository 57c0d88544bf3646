//! Kiwi is killed at any moment, again and again: no effect without its record, and the log still proves itself.

use crate::support::{TestEnvironment, rounds};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn killed_at_any_moment_the_log_is_whole_and_knows_of_every_effect() {
    let env = TestEnvironment::new();
    env.write("tools/mark.sh", ": > \"marker-$KIWI_PARAM_ID\"\nsleep 0.01\n");
    // How long a call takes here, so that the blows fall all over it, and behind it.
    let begun = Instant::now();
    assert_eq!(env.run(&["run", "mark", "id=0"]).code, 0);
    let whole = begun.elapsed().max(Duration::from_millis(10)) * 3 / 2;
    let count = rounds(500);
    let (mut killed, mut finished) = (0, 0);
    for round in 1..=count {
        let id = format!("id={round}");
        let mut command = env.command(&["run", "mark", &id]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Every part of the time once, in no order.
        let part = u32::try_from(round * 7919 % count).unwrap();
        std::thread::sleep(whole * part / u32::try_from(count).unwrap());
        child.kill().unwrap();
        match child.wait().unwrap().code() {
            None => killed += 1,
            Some(code) => finished += usize::from(code == 0),
        }
        let verified = env.run(&["audit", "verify", "--json"]);
        assert_eq!(verified.code, 0, "round {round}: {}", verified.stdout);
    }
    assert!(killed > count / 10, "{killed} of {count} were killed, {finished} were not");
    // Tools that outlived their Kiwi are done by now.
    std::thread::sleep(Duration::from_millis(300));
    let lines = env.audit();
    let of = |event: &str, field: &str| -> BTreeSet<String> {
        let lines = lines.iter().filter(|line| line["event"] == event);
        lines.map(|line| line.pointer(field).map(ToString::to_string).unwrap_or_default()).collect()
    };
    let entered = of("enter", "/params/id");
    let markers = std::fs::read_dir(env.project()).unwrap().flatten();
    let markers: Vec<String> = markers
        .filter_map(|file| Some(file.file_name().to_str()?.strip_prefix("marker-")?.to_owned()))
        .collect();
    assert!(markers.len() > 1);
    for marker in markers {
        let is_known = entered.contains(&marker) || entered.contains(&format!("\"{marker}\""));
        assert!(is_known, "`{marker}` happened without a record: {entered:?}");
    }
    let unfinished: BTreeSet<String> =
        of("enter", "/call").difference(&of("exit", "/call")).cloned().collect();
    let (code, out) = env.json(&["audit", "unfinished"]);
    let listed = out["unfinished"].as_array().unwrap();
    assert!(code == 0 && listed.iter().all(|call| call["state"] == "unknown"), "{out:#}");
    let listed: BTreeSet<String> = listed.iter().map(|call: &Value| call["call"].to_string()).collect();
    assert_eq!(listed, unfinished);
    eprintln!("{killed} killed, {finished} finished, {} unfinished", unfinished.len());
}
