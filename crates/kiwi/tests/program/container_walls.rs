//! Walls of a sandbox that a container engine builds, because the user's configuration says so.

use crate::isolation::{bash, every_kind};
use crate::support::TestEnvironment;
use crate::support::engines::{ENGINES, World};
use rustix::process::{Pid, Signal, kill_process};
use std::process::Child;
use std::time::{Duration, Instant};

const LEVELS: [&str; 2] = ["sandboxed", "restricted"];

fn walls_by(env: &TestEnvironment, backend: &str) {
    env.write_user("config/kiwi.toml", format!("[sandbox]\nbackend = \"{backend}\"\n"));
}

/// Private folders of runs.
fn folders(env: &TestEnvironment) -> usize {
    let entries = std::fs::read_dir(env.tmp()).unwrap().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("kiwi-run-")).count()
}

#[test]
fn every_kind_of_tool_runs_behind_them() {
    let world = World::new();
    let tools = every_kind(&world.env);
    for engine in ENGINES {
        walls_by(&world.env, engine);
        for (tool, level) in tools.iter().flat_map(|tool| LEVELS.map(|level| (tool, level))) {
            let (code, out, err) = world.run(&["run", tool, "who=Ada", "--isolation", level]);
            assert_eq!((code, out.trim()), (0, "hello Ada"), "{tool} at {level} on {engine}: {err}");
        }
        let (_, doctor) = world.json(&["doctor"]);
        let said = doctor.to_string();
        assert!(said.contains(&format!("{engine}, landlock and seccomp")), "{said}");
        assert_eq!(folders(&world.env), 0, "{engine}");
    }
}

#[test]
fn they_open_what_is_declared_and_nothing_else() {
    let world = World::new();
    let project = world.env.project();
    for name in ["data/in", "dir, with \"quotes\""] {
        std::fs::create_dir_all(project.join(name)).unwrap();
        std::fs::write(project.join(name).join("file"), "inside").unwrap();
    }
    std::fs::write(project.join("secret"), "s3cret").unwrap();
    let keys = "permissions: {filesystem_read: [\"data/**\", \"dir, with \\\"quotes\\\"\"], filesystem_write: [\"out/\"]}";
    let script = "cat data/in/file dir*/file; echo kept > out/result; cat secret data/in/../../secret .ai/tools/look.sh || true
        (echo x > data/in/file) || (echo x > stray) || echo refused; ls -A . /";
    for engine in ENGINES {
        walls_by(&world.env, engine);
        bash(&world.env, "look", keys, script);
        for level in LEVELS {
            let (code, out, err) = world.run(&["run", "look", "--isolation", level]);
            assert_eq!(code, 0, "{engine} at {level}: {out}{err}");
            assert!(out.starts_with("insideinside") && out.contains("refused"), "{engine}: {out}{err}");
            assert!(!out.contains("s3cret") && !out.contains("stray"), "{engine}: {out}");
            assert_eq!(std::fs::read_to_string(project.join("out/result")).unwrap(), "kept\n");
            std::fs::remove_file(project.join("out/result")).unwrap();
        }
        assert_eq!(std::fs::read_to_string(project.join("data/in/file")).unwrap(), "inside");
        assert!(!project.join("stray").exists());
    }
}

fn kill(child: &Child) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

/// The containers of this environment's calls: their names tell of nothing, but what they mount does.
fn containers(world: &World, engine: &str) -> Vec<String> {
    let format = "{{.Names}}";
    let names = world.engine(engine, &["ps", "--all", "--filter", "label=kiwi.owner", "--format", format]);
    let tmp = world.env.tmp().display().to_string();
    let is_ours = |name: &&str| world.engine(engine, &["inspect", name]).contains(&tmp);
    names.lines().filter(is_ours).map(str::to_owned).collect()
}

#[track_caller]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(30));
    }
}

#[test]
fn whoever_is_killed_nothing_is_left() {
    for engine in ENGINES {
        let world = World::new();
        walls_by(&world.env, engine);
        let begun = world.env.project().join("out/begun");
        let keys = "permissions: {filesystem_write: [\"out/\"]}";
        // A number that no other process sleeps for.
        let seconds = 100_000 + std::process::id();
        let script = format!("trap '' TERM; setsid sleep {seconds} & echo x > out/begun; sleep {seconds}");
        bash(&world.env, "stay", keys, &script);
        let sleepers = || crate::support::processes(&format!("sleep {seconds}")).len();
        let start = || {
            let kiwi = world.spawn(&["run", "stay", "--isolation", "sandboxed"]);
            wait_until("the tool runs", || begun.exists());
            std::fs::remove_file(&begun).unwrap();
            assert_eq!(containers(&world, engine).len(), 1, "{engine}");
            kiwi
        };
        // Kiwi itself.
        let mut kiwi = start();
        kill(&kiwi);
        kiwi.wait().unwrap();
        wait_until("all have ended", || sleepers() == 0);
        wait_until("the container is gone", || containers(&world, engine).is_empty());
        wait_until("its folder is gone", || folders(&world.env) == 0);

        // Its launcher. Podman's own supervisor is ended with it, and the next call removes what that could not.
        let mut kiwi = start();
        let launcher = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", kiwi.id())).unwrap();
        kill_process(Pid::from_raw(launcher.trim().parse().unwrap()).unwrap(), Signal::KILL).unwrap();
        assert_eq!(kiwi.wait().unwrap().code(), Some(1));
        wait_until("all have ended", || sleepers() == 0);
        assert_eq!(folders(&world.env), 0, "{engine}");
        bash(&world.env, "next", "", "echo next");
        let (code, out, err) = world.run(&["run", "next", "--isolation", "restricted"]);
        assert_eq!((code, out.as_str()), (0, "next\n"), "{engine}: {err}");
        wait_until("the container is gone", || containers(&world, engine).is_empty());
    }
}

#[test]
fn an_engine_that_is_not_there_is_a_refusal() {
    let env = TestEnvironment::new();
    bash(&env, "tool", "", "echo ran > \"$PWD/ran\"; echo ran");
    for engine in ENGINES {
        walls_by(&env, engine);
        let mut command = env.command(&["run", "tool", "--isolation", "restricted", "--json"]);
        command.env("PATH", "/nowhere").env("DOCKER_HOST", "unix:///nowhere/docker.sock");
        let output = command.output().unwrap();
        let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert_eq!(
            (&said["status"], &said["error"]["kind"]),
            (&"refused".into(), &"sandbox_unavailable".into())
        );
        assert!(said["error"]["message"].as_str().unwrap().contains(engine), "{said}");
        assert!(said["error"]["hint"].as_str().unwrap().contains("sandbox.backend"), "{said}");
        // What needs no walls runs as ever.
        assert_eq!(env.run(&["run", "tool"]).stdout, "ran\n");
    }
}

#[test]
fn the_configuration_says_who_builds_them() {
    let env = TestEnvironment::new();
    bash(&env, "who", "", "tr '\\0' ' ' < /proc/1/cmdline");
    let role = |first: &str| {
        let words = first.split_once("__launch ").unwrap_or_else(|| panic!("no launcher: {first}")).1;
        words.trim_end().to_owned()
    };
    // One that is behind its walls from its birth is also told who is who there.
    let is_walled = |role: &str| role.starts_with("walled ");
    for (backend, expected) in [("bwrap", "inside"), ("landlock", "walled"), ("auto", "inside")] {
        walls_by(&env, backend);
        let ran = env.run(&["run", "who", "--isolation", "restricted"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let role = role(&ran.stdout);
        assert!(role == expected || (expected == "walled" && is_walled(&role)), "{backend}: {role}");
    }
    walls_by(&env, "dokcer");
    let ran = env.run(&["run", "who"]);
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    assert!(ran.stderr.contains("dokcer") && ran.stderr.contains("podman"), "{}", ran.stderr);
    // A project has no say.
    walls_by(&env, "landlock");
    env.write("config/kiwi.toml", "[sandbox]\nbackend = \"bwrap\"\n");
    let ran = env.run(&["run", "who", "--isolation", "restricted"]);
    assert!(is_walled(&role(&ran.stdout)), "{}", ran.stdout);
    assert!(ran.stderr.contains("the project sets `sandbox.backend`"), "{}", ran.stderr);
}
