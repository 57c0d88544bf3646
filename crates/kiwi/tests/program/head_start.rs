//! What `kiwi run` has begun by the time it knows what it is to run, and what it does where that cannot begin so.

use crate::isolation::bash;
use crate::support::{TestEnvironment, ran};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const ASK: &str = "rule careful { guards { $tool == \"who\" -> ask \"may it?\" } effects { } }";

/// A `kiwi run` that waits for a person, with what it has begun.
struct Waiting {
    kiwi: Child,
    id: String,
    launcher: String,
    /// What the launcher was told to be.
    role: String,
    /// The namespace that the launcher has its number in.
    numbers: PathBuf,
}

impl Waiting {
    fn start(env: &TestEnvironment, level: &str) -> Self {
        let mut command = env.command(&["run", "who", "--isolation", level, "--wait"]);
        let mut kiwi = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let id = asked_under(&mut kiwi);
        let (launcher, role, numbers) = begun_by(kiwi.id());
        Self { kiwi, id, launcher, role, numbers }
    }

    /// Waits for the end, and returns the exit code and what was printed.
    fn end(&mut self) -> (Option<i32>, String) {
        let mut out = String::new();
        self.kiwi.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        (self.kiwi.wait().unwrap().code(), out.trim_end().to_owned())
    }
}

/// What a person is to answer.
fn asked_under(kiwi: &mut Child) -> String {
    let mut said = String::new();
    BufReader::new(kiwi.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
    let id = said.split("kiwi approve ").nth(1).and_then(|rest| rest.split('`').next());
    id.unwrap_or_else(|| panic!("it does not wait: {said}")).to_owned()
}

/// The launcher of a process, once there is one.
fn begun_by(parent: u32) -> (String, String, PathBuf) {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        if let Some(found) = launcher(parent) {
            return found;
        }
        assert!(Instant::now() < deadline, "no launcher has begun");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The only child of a process, if it has become a launcher.
fn launcher(parent: u32) -> Option<(String, String, PathBuf)> {
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).ok()?.flatten();
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let child = children.collect::<String>().trim().to_owned();
    let line = std::fs::read(format!("/proc/{child}/cmdline")).ok()?;
    let line = String::from_utf8(line).ok()?.replace('\0', " ");
    let role = line.split_once("__launch")?.1.trim().to_owned();
    let numbers = std::fs::read_link(format!("/proc/{child}/ns/pid")).ok()?;
    Some((child, role, numbers))
}

fn place(script: &str) -> TestEnvironment {
    let env = TestEnvironment::new();
    env.write_user("config/kiwi.toml", "[sandbox]\nbackend = \"landlock\"\n");
    env.write("rules/r.kappa", ASK);
    bash(&env, "who", "", script);
    env
}

#[test]
fn a_call_behind_walls_begins_with_them_before_its_plan() {
    let env = place("readlink /proc/self/ns/pid");
    let own = std::fs::read_link("/proc/self/ns/pid").unwrap();
    for (level, is_walled) in [("standard", false), ("sandboxed", true), ("restricted", true)] {
        let mut waiting = Waiting::start(&env, level);
        assert_eq!(waiting.role.starts_with("walled "), is_walled, "{level}: {}", waiting.role);
        assert_eq!(waiting.numbers != own, is_walled, "{level}");
        assert_eq!(env.run(&["approve", &waiting.id]).code, 0);
        let (code, ran_in) = waiting.end();
        assert_eq!((code, Path::new(&ran_in)), (Some(0), &*waiting.numbers), "{level}: there it ran");
    }
}

#[test]
fn what_was_begun_for_a_call_that_is_rejected_ends_with_it() {
    for level in ["standard", "restricted"] {
        let env = place("touch ran");
        let mut waiting = Waiting::start(&env, level);
        assert_eq!(env.run(&["reject", &waiting.id]).code, 0);
        assert_eq!(waiting.end().0, Some(3));
        let launcher = Path::new("/proc").join(&waiting.launcher);
        let deadline = Instant::now() + Duration::from_secs(10);
        while launcher.exists() {
            assert!(Instant::now() < deadline, "{level}: the launcher is left");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!env.project().join("ran").exists());
    }
}

/// Where the system lets no program start from memory, Kiwi is its own launcher.
#[test]
fn where_nothing_starts_from_memory_kiwi_itself_launches() {
    let env = TestEnvironment::new();
    bash(&env, "parent", "", "readlink /proc/$PPID/exe");
    bash(&env, "ran", "", "echo ran");
    let kiwi = env!("CARGO_BIN_EXE_kiwi");
    assert_eq!(env.run(&["run", "parent"]).stdout.trim_end(), "/memfd:kiwi (deleted)");
    let run = |tool: &str, level: &str| {
        let script = "echo 2 > /proc/sys/vm/memfd_noexec && exec \"$@\"";
        let words =
            ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "sh", "-c", script, "sh", kiwi];
        let call = ["run", tool, "--isolation", level];
        let ran = ran(&env.start("unshare", &[&words[..], &call].concat()).output().unwrap());
        assert_eq!(ran.code, 0, "{tool} at {level}: {}", ran.stderr);
        ran.stdout.trim_end().to_owned()
    };
    assert_eq!(run("parent", "standard"), kiwi);
    for level in ["trusted", "standard", "sandboxed", "restricted"] {
        assert_eq!(run("ran", level), "ran", "{level}");
    }
}
