//! Tools in containers, on real engines. `cargo xtask test` starts those and says where they are.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and drives the real program"
)]

mod support;

use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use support::closed::{ALL, check};
use support::engines::{ENGINES, World};
use support::rounds;
use support::subject::Type;

/// A word that is in no other test's command.
fn marker(name: &str, engine: &str) -> String {
    format!("mark-{name}-{engine}-{}", std::process::id())
}

fn kill(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), signal).unwrap();
}

#[test]
fn parameters_go_in_and_results_come_out() {
    let world = World::new();
    std::fs::write(world.env.project().join("note"), "from the host").unwrap();
    for engine in ENGINES {
        let script = "echo \"{name} $KIWI_PARAM_NAME $GREETING\"; cat; echo; cat /in/note; echo oh >&2";
        let more = "  volumes: [{host: \"{project_dir}\", container: /in, mode: ro}]\n\nconfig: {env: {GREETING: good day}}";
        let id = world.tool(engine, script, more);
        let (code, out, err) = world.run(&["run", &id, "name=Ada"]);
        assert_eq!(code, 0, "{err}");
        assert_eq!(out, "Ada Ada good day\n{\"name\":\"Ada\"}\nfrom the host\n", "{engine}");
        assert!(err.contains("oh"), "{err}");

        let id = world.tool(engine, "echo {{\\\"a\\\": 1}}; echo why >&2; exit 7", "");
        let (code, outcome) = world.json(&["run", &id]);
        assert_eq!(code, 1, "{outcome}");
        assert_eq!(outcome["error"]["kind"], "tool_failed");
        assert_eq!(outcome["error"]["details"]["exit_code"], 7, "{engine}");
        assert_eq!(outcome["result"], serde_json::json!({"a": 1}));
        assert!(outcome["stderr"].as_str().unwrap().contains("why"));
    }
}

#[test]
fn a_new_tool_needs_only_its_image() {
    let world = World::new();
    let (code, _, err) = world.run(&["tool", "new", "mine", "--type", "docker"]);
    assert_eq!(code, 0, "{err}");
    let file = world.env.project().join(".ai/tools/mine.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("image: debian:12-slim"), "{text}");
    std::fs::write(&file, text.replace("debian:12-slim", "kiwi-test:1")).unwrap();
    assert_eq!(world.run(&["tool", "check", "mine"]).0, 0);
    assert_eq!(world.run(&["run", "mine", "name=Ada"]), (0, "Hello, Ada\n".into(), String::new()));
}

#[test]
fn a_secret_goes_in_and_no_image_of_its_memory_comes_out() {
    let world = World::new();
    assert_eq!(world.env.run_with_input(&["auth", "set", "door_key"], "0pen-sesame\n").code, 0);
    for engine in ENGINES {
        let script = "test \"$DOOR_KEY\" = 0pen-sesame && echo told $DOOR_KEY; ulimit -c; ulimit -H -c";
        let id = world.tool(engine, script, "requires_secret: [door_key]\n");
        let (code, out, err) = world.run(&["run", &id]);
        // In blocks, of which one byte is none.
        assert_eq!((code, out.as_str()), (0, "told [secret:door_key]\n0\n0\n"), "{engine}: {err}");
    }
}

#[test]
fn a_command_that_the_image_lacks_is_named() {
    let world = World::new();
    for engine in ENGINES {
        let id = world.tool(engine, "true", "");
        let file = world.env.project().join(format!(".ai/tools/{id}.yaml"));
        let text = std::fs::read_to_string(&file).unwrap().replace("/bin/sh, -c, ", "no-such-program, ");
        std::fs::write(&file, text).unwrap();
        let (code, outcome) = world.json(&["run", &id]);
        assert_eq!((code, &outcome["error"]["kind"]), (1, &"tool_failed".into()), "{outcome}");
        let message = outcome["error"]["message"].as_str().unwrap();
        assert!(message.contains("no-such-program"), "{engine}: {message}");
    }
}

#[test]
fn what_is_to_be_mounted_is_there_before_anything_starts() {
    let world = World::new();
    let folder = world.env.project().join("shelf");
    for engine in ENGINES {
        let more = "  volumes: [{host: shelf, container: /shelf, mode: rw}]\n";
        let id = world.tool(engine, "echo here > /shelf/book; ls /shelf", more);
        let (code, outcome) = world.json(&["run", &id]);
        assert_eq!((code, &outcome["error"]["kind"]), (3, &"missing_requirement".into()), "{outcome}");
        let hint = outcome["error"]["hint"].as_str().unwrap();
        assert!(hint.contains(&format!("mkdir -p {}", folder.display())), "{hint}");
        assert!(!folder.exists());
        // From the project on, as every path of a manifest.
        std::fs::create_dir(&folder).unwrap();
        assert_eq!(world.run(&["run", &id]), (0, "book\n".into(), String::new()), "{engine}");
        assert_eq!(std::fs::read_to_string(folder.join("book")).unwrap(), "here\n");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

/// Also of a command that is over before its client is ready, and also bytes that are no text.
#[test]
fn every_byte_comes_out_every_time() {
    let world = World::new();
    for engine in ENGINES {
        let script = "printf 'a\\000\\377b\\n\\nc'; printf 'd\\n\\ne' >&2; seq 20000 | md5sum >&2; seq 20000";
        let id = world.tool(engine, script, "");
        let numbers: String = (1..=20000).flat_map(|number| [number.to_string(), "\n".into()]).collect();
        for _ in 0..rounds(100) {
            let output = world.command(&["run", &id]).output().unwrap();
            let expected = [b"a\0\xffb\n\nc", numbers.as_bytes()].concat();
            assert!(output.stdout == expected, "{engine}: {} bytes", output.stdout.len());
            assert!(output.stderr.starts_with(b"d\n\ne"), "{engine}: {:?}", output.stderr);
        }
    }
}

#[test]
fn a_container_is_held() {
    let world = World::new();
    for engine in ENGINES {
        let script = "ls /sys/class/net; touch /x 2>/dev/null || echo read only; touch /tmp/x && echo room; id -u; grep CapEff /proc/self/status; grep NoNewPrivs /proc/self/status";
        let id = world.tool(engine, script, "  user: 1234");
        let (code, out, err) = world.run(&["run", &id, "--isolation", "restricted"]);
        assert_eq!(code, 0, "{err}");
        let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(out, "lo read only room 1234 CapEff: 0000000000000000 NoNewPrivs: 1", "{engine}: {err}");
        let script = "x=aaaaaaaa; while :; do x=$x$x; done";
        let id = world.tool(engine, script, "  memory: 16m");
        let (code, outcome) = world.json(&["run", &id]);
        assert_eq!(code, 1);
        assert_eq!(outcome["error"]["details"]["exit_code"], 137, "{engine}: {outcome}");
        assert!(outcome["error"]["message"].as_str().unwrap().contains("`memory` of 16m"), "{outcome}");
        // Podman notes it in a file, where it is started.
        assert!(!world.env.project().join("oom").exists(), "{engine}");

        let id = world.tool(engine, "true", "  network: bridge");
        let (_, outcome) = world.json(&["run", &id, "--isolation", "sandboxed"]);
        assert_eq!(outcome["error"]["kind"], "sandbox_unavailable", "{outcome}");
    }
}

#[test]
fn what_ends_a_call_ends_its_container() {
    let world = World::new();
    for engine in ENGINES {
        let mark = marker("timeout", engine);
        let id = world.tool(engine, &format!("echo {mark}; sleep 600"), "\nconfig: {timeout: 1.5}");
        let (code, outcome) = world.json(&["run", &id]);
        assert_eq!((code, &outcome["error"]["kind"]), (1, &"timeout".into()), "{engine}: {outcome}");
        world.nothing_left(engine, &mark);

        for (name, signal) in [("int", Signal::INT), ("term", Signal::TERM), ("kill", Signal::KILL)] {
            let mark = marker(name, engine);
            let id = world.tool(engine, &format!("trap '' TERM INT; echo {mark}; sleep 600"), "");
            let mut child = world.spawn(&["run", &id]);
            world.await_container(engine, &mark);
            kill(&child, signal);
            child.wait().unwrap();
            world.nothing_left(engine, &mark);
        }
    }
}

/// A file or folder, with what is in it.
fn below(path: PathBuf) -> Vec<PathBuf> {
    let inside = std::fs::read_dir(&path).into_iter().flatten().flatten();
    let inside: Vec<PathBuf> = inside.flat_map(|entry| below(entry.path())).collect();
    [vec![path], inside].concat()
}

/// Killed at any moment, also while the engine is still making the container.
#[test]
fn no_container_outlives_a_killed_kiwi() {
    let world = World::new();
    for engine in ENGINES {
        let mark = marker("storm", engine);
        let id = world.tool(engine, &format!("echo {mark}; sleep 600"), "");
        for round in 0..rounds(100) {
            let mut child = world.spawn(&["run", &id]);
            std::thread::sleep(Duration::from_millis(u64::try_from(round * 37 % 700).unwrap()));
            let signal = if round % 2 == 0 { Signal::KILL } else { Signal::INT };
            kill(&child, signal);
            child.wait().unwrap();
        }
        world.nothing_left(engine, &mark);
    }
    let deadline = Instant::now() + Duration::from_secs(10);
    let left = || -> Vec<_> {
        std::fs::read_dir(world.env.tmp()).unwrap().flatten().map(|entry| below(entry.path())).collect()
    };
    while !left().is_empty() {
        assert!(Instant::now() < deadline, "{:?} are left in the scratch folder", left());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn what_everybodys_death_left_is_removed_by_the_next_call_or_by_prune() {
    let world = World::new();
    for (engine, by_prune) in [("docker", false), ("podman", false), ("docker", true)] {
        let mark = marker(if by_prune { "prune" } else { "next" }, engine);
        let id = world.tool(engine, &format!("echo {mark}; sleep 600"), "");
        let mut child = world.spawn(&["run", &id]);
        let name = world.await_container(engine, &mark);
        // The launcher, the helper and Kiwi itself, all at once.
        let helper: i32 = name.rsplit('.').nth(1).unwrap().parse().unwrap();
        let stat = std::fs::read_to_string(format!("/proc/{helper}/stat")).unwrap();
        let launcher: i32 =
            stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().parse().unwrap();
        // Stopped first: none of them gets to see to the death of another.
        for signal in [Signal::STOP, Signal::KILL] {
            for pid in [helper, launcher] {
                kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
            }
        }
        kill(&child, Signal::KILL);
        child.wait().unwrap();
        // A call of another test may be faster: they are all this user's.
        if by_prune {
            let (_, listed) = world.json(&["cache", "list"]);
            let kinds: Vec<_> = listed["items"].as_array().unwrap().iter().map(|it| &it["kind"]).collect();
            let is_listed = kinds.contains(&&"container".into());
            assert!(is_listed || world.containers(engine, &mark).is_empty(), "{listed}");
            let (code, pruned) = world.json(&["cache", "prune"]);
            assert_eq!(code, 0, "{pruned}");
        } else {
            let id = world.tool(engine, "true", "");
            let (code, _, err) = world.run(&["run", &id]);
            assert_eq!(code, 0, "{err}");
        }
        world.nothing_left(engine, &mark);
    }
}

#[test]
fn a_missing_image_is_refused_before_anything_starts() {
    let world = World::new();
    for engine in ENGINES {
        let manifest = format!(
            "tool_id: absent\nversion: \"1.0.0\"\ntool_type: docker\nexecutor: {{image: \"localhost/absent:9\", engine: {engine}, pull: never}}\n"
        );
        world.env.write("tools/absent.yaml", manifest);
        let (code, outcome) = world.json(&["run", "absent"]);
        assert_eq!(outcome["error"]["kind"], "missing_requirement", "{outcome}");
        assert_ne!(code, 0);
        assert!(outcome["error"]["message"].as_str().unwrap().contains("localhost/absent:9"), "{outcome}");
        assert!(outcome["error"]["hint"].as_str().unwrap().contains(&format!("{engine} pull")), "{outcome}");
        let (_, checked) = world.json(&["tool", "check", "absent"]);
        assert_eq!(checked["items"][0]["issues"][0]["kind"], "missing_requirement", "{checked}");
    }
}

#[test]
fn an_image_is_built_once_and_again_when_a_file_changes() {
    let world = World::new();
    for engine in ENGINES {
        let manifest = format!(
            "tool_id: made\nversion: \"1.0.0\"\ntool_type: docker\nexecutor:\n  build: {{context: image}}\n  engine: {engine}\n  command: [cat, /word]\n"
        );
        world.env.write("tools/made/tool.yaml", manifest);
        world.env.write("tools/made/image/Dockerfile", "FROM kiwi-test:1\nCOPY word /word\n");
        let built = || {
            let words = ["images", "--filter", "label=kiwi.built=1", "--format", "{{.Repository}}:{{.Tag}}"];
            world.engine(engine, &words).lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>()
        };
        let before = built();
        for (word, images) in [("one", 1), ("one", 1), ("two", 2), ("one", 2)] {
            world.env.write("tools/made/image/word", format!("{word}-{engine}"));
            let (code, out, err) = world.run(&["run", "made"]);
            assert_eq!((code, out.as_str()), (0, format!("{word}-{engine}\n").as_str()), "{err}");
            assert_eq!(built().difference(&before).count(), images, "{engine}");
        }
        world.env.write("tools/made/image/word", format!("three-{engine}"));
        let start = |_| {
            world.command(&["run", "made"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let together: Vec<Child> = (0..3).map(start).collect();
        let said: Vec<String> = together
            .into_iter()
            .map(|child| String::from_utf8_lossy(&child.wait_with_output().unwrap().stderr).into_owned())
            .collect();
        let built = said.iter().filter(|text| text.contains("building the image")).count();
        assert_eq!(built, 1, "{engine}: of several callers one builds: {said:?}");

        let (_, pruned) = world.json(&["cache", "prune", "--older-than", "0"]);
        assert!(pruned["pruned"].as_array().unwrap().iter().any(|it| it["kind"] == "image"), "{pruned}");
        world.env.write("tools/made/image/Dockerfile", "FROM kiwi-test:1\nRUN false\n");
        let (_, outcome) = world.json(&["run", "made"]);
        assert_eq!(outcome["error"]["kind"], "missing_requirement", "{outcome}");
        std::fs::remove_file(world.env.project().join(".ai/tools/made/image/Dockerfile")).unwrap();
        let (_, outcome) = world.json(&["run", "made"]);
        assert_eq!(outcome["error"]["kind"], "invalid_manifest", "{outcome}");
    }
}

/// What closes the gate closes it for containers: see `fail_closed.rs` for the tools of the host.
#[test]
fn whatever_breaks_no_container_runs() {
    let world = World::new();
    let variables = world.variables();
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    // Both at once: some faults are only known by waiting.
    std::thread::scope(|scope| {
        for engine in ENGINES {
            scope.spawn(|| ALL.map(|fault| check(fault, Type::Container(engine), &variables)));
        }
    });
}
