//! A thousand calls that end in every way there is, several at once, and nothing is left of any: no process, no
//! container, no folder, no control group. A cycle of them by default, all in `cargo xtask soak`.
//!
//! What a process that stays must not leave in itself is counted in `kernel_storm.rs`.

use crate::support::storm::{Call, End, Storm};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Times every call is made in `cargo xtask soak`.
const CYCLES: usize = 6;
/// Calls at one time.
const WORKERS: usize = 4;
const ENGINES: [&str; 2] = ["docker", "podman"];
const IN_CONTAINERS: [End; 4] = [End::Good, End::Timeout, End::Cancelled, End::Killed];

/// One call of a cycle.
#[derive(Debug, Clone, Copy)]
enum Strike {
    Here(Call),
    Inside(&'static str, End),
}

/// A cycle: every call, and a few in containers.
fn cycle(engines: Option<&Path>) -> Vec<Strike> {
    let mut strikes: Vec<Strike> = Call::all().into_iter().map(Strike::Here).collect();
    if engines.is_some() {
        for (number, end) in IN_CONTAINERS.into_iter().enumerate() {
            for engine in ENGINES {
                // Among the others, not after them.
                strikes.insert(strikes.len() * number / IN_CONTAINERS.len(), Strike::Inside(engine, end));
            }
        }
    }
    strikes
}

fn engines() -> Option<PathBuf> {
    let engines = std::env::var_os("KIWI_TEST_CONTAINERS").map(PathBuf::from);
    if engines.is_none() {
        assert!(
            std::env::var_os("KIWI_XTASK").is_none(),
            "`cargo xtask test` did not start container engines"
        );
        eprintln!(
            "without containers: `cargo xtask engines cargo test -p kiwi --test program run_storm` has them"
        );
    }
    engines
}

fn container_tool(storm: &Storm, engine: &str, end: End) -> String {
    let id = format!("in_{engine}_{end:?}").to_lowercase();
    let mark = &storm.mark;
    let script = if end == End::Good { "echo good" } else { "echo ready; sleep 60" };
    let timeout = if end == End::Timeout { 1.5 } else { 30.0 };
    let text = format!(
        "tool_id: {id}\nversion: \"1.0.0\"\ntool_type: docker\nexecutor:\n  image: kiwi-test:1\n  engine: {engine}\n  \
         command: [/bin/sh, -c, \"{script} # {mark}\"]\nconfig: {{timeout: {timeout}}}\n"
    );
    storm.env.write(&format!("tools/{id}.yaml"), text);
    id
}

fn point(command: &mut Command, engines: &Path) {
    command
        .env("DOCKER_HOST", format!("unix://{}/docker.sock", engines.display()))
        .env("CONTAINERS_CONF", engines.join("containers.conf"))
        .env("CONTAINERS_STORAGE_CONF", engines.join("storage.conf"));
}

/// Containers of this storm.
fn containers(storm: &Storm, engines: &Path) -> Vec<String> {
    let words =
        ["ps", "--all", "--no-trunc", "--filter", "label=kiwi.owner", "--format", "{{.Names}} {{.Command}}"];
    let listed = ENGINES.iter().flat_map(|engine| {
        let mut command = Command::new(engine);
        point(&mut command, engines);
        let output = command.args(words).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().map(|line| format!("{engine}: {line}")).collect::<Vec<_>>()
    });
    listed.filter(|line| line.contains(&storm.mark)).collect()
}

/// A call that was started, and everything it says.
struct Struck {
    child: Child,
    says: std::process::ChildStdout,
    said: Vec<u8>,
}

impl Struck {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let says = child.stdout.take().unwrap();
        Self { child, says, said: Vec::new() }
    }

    /// Waits until the tool is in the middle of it.
    fn await_ready(&mut self) {
        let mut buffer = [0; 256];
        while !self.said.starts_with(b"ready\n") {
            let read = self.says.read(&mut buffer).unwrap();
            assert!(read > 0, "it ended and had said {:?}", String::from_utf8_lossy(&self.said));
            self.said.extend_from_slice(&buffer[..read]);
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.child.id().cast_signed()).unwrap(), signal).unwrap();
    }

    /// Kills the launcher, which is a child of Kiwi, and which may have gone by itself.
    fn kill_launcher(&self) {
        let pid = self.child.id();
        let children =
            std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        for child in children.split_whitespace() {
            let line = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
            if String::from_utf8_lossy(&line).contains("__launch") {
                let _ = kill_process(Pid::from_raw(child.parse().unwrap()).unwrap(), Signal::KILL);
            }
        }
    }

    /// Waits for its end, not for ever. Nobody takes leave of it yet, so that its number stays its own.
    fn await_end(&self, patience: Duration) {
        let deadline = Instant::now() + patience;
        let stat = || std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        while !stat().contains(") Z ") && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The exit code, none if a signal ended it, and all of standard output.
    fn finish(mut self) -> (Option<i32>, String) {
        self.says.read_to_end(&mut self.said).unwrap();
        (self.child.wait().unwrap().code(), String::from_utf8_lossy(&self.said).into_owned())
    }
}

/// Makes one call. Whoever is to be hit is hit in the middle of the tool, or at any moment at all.
fn strike(storm: &Storm, engines: Option<&Path>, strike: Strike, number: usize) {
    let (end, tool, level, path) = match strike {
        Strike::Here(call) => (call.end, call.tool(), call.level, Some(storm.search_path(call))),
        Strike::Inside(engine, end) => (end, container_tool(storm, engine, end), "standard", None),
    };
    let is_aimed = matches!(end, End::Cancelled | End::Killed | End::Lost);
    let words = ["run", &tool, "--isolation", level, "--json"];
    // With `--json` the tool's output comes at the end: of those that are hit, it is wanted while they run.
    let mut command = storm.env.command(&words[..if is_aimed { 4 } else { 5 }]);
    if let Some(path) = path {
        command.env("PATH", path);
    }
    if let Some(engines) = engines {
        point(&mut command, engines);
    }
    let mut struck = Struck::start(command);
    let in_the_middle = !number.is_multiple_of(3);
    if is_aimed && in_the_middle {
        struck.await_ready();
    } else if is_aimed {
        std::thread::sleep(Duration::from_millis(u64::try_from(number * 37 % 211).unwrap()));
    }
    match end {
        End::Cancelled => struck.signal(Signal::INT),
        End::Killed => struck.signal(Signal::KILL),
        End::Lost => struck.kill_launcher(),
        _ => {}
    }
    if end == End::Lost && !in_the_middle {
        // It may have had no launcher yet, or another one for a trial. Not at once: Kiwi is not to go with it.
        struck.await_end(Duration::from_secs(2));
        struck.signal(Signal::INT);
    }
    let (code, said) = struck.finish();
    let expected = match end {
        End::Good | End::Detached => Some(0),
        End::Killed => None,
        End::Cancelled if in_the_middle => Some(130),
        // Nobody heeds a signal yet, or it is heeded, or it came too late.
        End::Cancelled | End::Lost if !in_the_middle => return,
        _ => Some(1),
    };
    assert_eq!(code, expected, "{strike:?}: {said}");
    if !is_aimed {
        let outcome: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{strike:?}: {said}"));
        match end.error() {
            None => assert_eq!(outcome["result"].as_str().map(str::trim), Some("good"), "{strike:?}: {said}"),
            Some((kind, details)) => {
                assert_eq!(outcome["error"]["kind"], kind, "{strike:?}: {said}");
                if let Some((name, value)) = details {
                    assert_eq!(outcome["error"]["details"][name], value, "{strike:?}: {said}");
                }
            }
        }
    }
}

#[test]
fn a_storm_of_calls_leaves_nothing() {
    let engines = engines();
    let storm = Storm::new();
    let cycle = cycle(engines.as_deref());
    let cycles = if std::env::var_os("KIWI_SOAK").is_some() { CYCLES } else { 1 };
    let (next, begun) = (AtomicUsize::new(0), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= cycle.len() * cycles {
                        return;
                    }
                    // Not the same moment for the same call in every cycle.
                    strike(
                        &storm,
                        engines.as_deref(),
                        cycle[number % cycle.len()],
                        number + number / cycle.len(),
                    );
                }
            });
        }
    });
    // What only a later start can clear up, a later start clears up.
    for call in Call::all().into_iter().filter(|call| call.end == End::Good) {
        strike(&storm, None, Strike::Here(call), 0);
    }
    storm.nothing_left();
    let deadline = Instant::now() + Duration::from_secs(10);
    while let Some(engines) = engines.as_deref() {
        let left = containers(&storm, engines);
        if left.is_empty() {
            break;
        }
        assert!(Instant::now() < deadline, "containers are left: {left:#?}");
    }
    eprintln!("{} calls in {:.1} s", cycle.len() * cycles, begun.elapsed().as_secs_f64());
}
