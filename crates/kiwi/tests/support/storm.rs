//! Tools that end in every way there is, and a look at what any of them left behind.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::{TestEnvironment, write};

/// How a call comes to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Good,
    Code,
    Fault,
    Abort,
    Timeout,
    Flood,
    /// Ends well and leaves processes in sessions of their own.
    Detached,
    /// Somebody changes their mind.
    Cancelled,
    /// Kiwi is killed with -9.
    Killed,
    /// Its launcher is.
    Lost,
}

pub const ENDS: [End; 10] = [
    End::Good,
    End::Code,
    End::Fault,
    End::Abort,
    End::Timeout,
    End::Flood,
    End::Detached,
    End::Cancelled,
    End::Killed,
    End::Lost,
];
pub const LEVELS: [&str; 4] = ["trusted", "standard", "sandboxed", "restricted"];

impl End {
    /// What a tool that does not end by itself, but is ended, does until then.
    const fn is_awaited(self) -> bool {
        matches!(self, Self::Timeout | Self::Cancelled | Self::Killed | Self::Lost)
    }

    /// The kind of error, and what its details tell: `exit_code` or `signal`.
    pub const fn error(self) -> Option<(&'static str, Option<(&'static str, i64)>)> {
        match self {
            Self::Good | Self::Detached | Self::Killed => None,
            Self::Code => Some(("tool_failed", Some(("exit_code", 3)))),
            Self::Fault => Some(("tool_failed", Some(("signal", 11)))),
            Self::Abort => Some(("tool_failed", Some(("signal", 6)))),
            Self::Timeout => Some(("timeout", None)),
            Self::Flood => Some(("output_limit", None)),
            Self::Cancelled | Self::Lost => Some(("tool_failed", None)),
        }
    }

    fn bash(self) -> &'static str {
        match self {
            Self::Good => "echo good",
            Self::Code => "exit 3",
            Self::Fault => "kill -SEGV $$; /usr/bin/sleep 60",
            Self::Abort => "kill -ABRT $$; /usr/bin/sleep 60",
            Self::Flood => "while :; do echo \"$STORM\"; done",
            Self::Detached => {
                "/usr/bin/setsid /usr/bin/sleep 60 &
                (/usr/bin/setsid /usr/bin/env -i /bin/bash -c \"exec -a $STORM /usr/bin/sleep 60\" > /dev/null 2>&1 &)
                echo good"
            }
            Self::Timeout | Self::Cancelled | Self::Killed | Self::Lost => {
                "/usr/bin/setsid /usr/bin/sleep 60 & (/usr/bin/setsid /usr/bin/sleep 60 &)
                echo ready; /usr/bin/sleep 60"
            }
        }
    }

    fn python(self) -> &'static str {
        match self {
            Self::Good => "print('good', flush=True)",
            Self::Code => "sys.exit(3)",
            Self::Fault => "os.kill(os.getpid(), 11); time.sleep(60)",
            Self::Abort => "os.abort()",
            Self::Flood => "while True: print(os.environ['STORM'])",
            Self::Detached => "apart(); print('good', flush=True)",
            Self::Timeout | Self::Cancelled | Self::Killed | Self::Lost => {
                "apart(); print('ready', flush=True); time.sleep(60)"
            }
        }
    }
}

/// Two forks and a session: nobody's child any more.
const APART: &str = "import os, sys, time
def apart():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 3)
            time.sleep(60)
        os._exit(0)
";

/// A call of the storm.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    pub end: End,
    pub level: &'static str,
    pub is_python: bool,
    /// With a control group around it.
    pub is_limited: bool,
    /// With a search path on which there is `bwrap`, so that this is what builds the walls.
    pub has_bwrap: bool,
}

impl Call {
    /// Every end at every level, of Bash and Python tools, in either sandbox.
    pub fn all() -> Vec<Self> {
        let mut calls = Vec::new();
        for number in 0..4 {
            for level in LEVELS {
                for end in ENDS {
                    let (is_python, has_bwrap) = (number % 2 == 1, number / 2 == 1);
                    // Every other call of a kind, the other one in each sandbox.
                    let is_limited = (calls.len() + number / 2) % 2 == 1 && is_root();
                    calls.push(Self { end, level, is_python, is_limited, has_bwrap });
                }
            }
        }
        calls
    }

    pub fn tool(self) -> String {
        let language = if self.is_python { "python" } else { "bash" };
        let limited = if self.is_limited { "_limited" } else { "" };
        format!("{language}_{:?}{limited}", self.end).to_lowercase()
    }
}

/// A place for a storm: its tools, and two search paths.
pub struct Storm {
    pub env: TestEnvironment,
    /// On every process of this storm, in its environment, its command line or its folder.
    pub mark: String,
    without_bwrap: PathBuf,
}

impl Storm {
    pub fn new() -> Self {
        let env = TestEnvironment::new();
        let root = env.project().parent().unwrap().to_owned();
        let mark = root.file_name().unwrap().to_str().unwrap().to_owned();
        let without_bwrap = root.join("bin");
        fs::create_dir(&without_bwrap).unwrap();
        // What is on the path may be a program that looks for the real one elsewhere on it.
        let real = ["bash", "-c", "echo $BASH", "python3", "-c", "import sys; print(sys.executable)"];
        for words in real.chunks(3) {
            let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
            let program = String::from_utf8(output.stdout).unwrap();
            std::os::unix::fs::symlink(program.trim(), without_bwrap.join(words[0])).unwrap();
        }
        let storm = Self { env, mark, without_bwrap };
        for call in Call::all() {
            storm.write(call);
        }
        storm
    }

    pub fn search_path(&self, call: Call) -> String {
        if call.has_bwrap {
            std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".into())
        } else {
            self.without_bwrap.display().to_string()
        }
    }

    fn write(&self, call: Call) {
        let (id, mark) = (call.tool(), &self.mark);
        let (runtime, file, text) = if call.is_python {
            ("python_runtime", "main.py", format!("{APART}{}\n", call.end.python()))
        } else {
            ("bash_runtime", "main.sh", format!("{}\n", call.end.bash()))
        };
        let timeout = if call.end == End::Timeout { "0.4" } else { "30" };
        let limits = if call.is_limited { "pids: 40, memory: 268435456, " } else { "" };
        let manifest = format!(
            "tool_id: {id}\nversion: \"1.0.0\"\ntool_type: script\nexecutor: {runtime}\nmanifest: {{entrypoint: {file}}}\n\
             config: {{timeout: {timeout}, env: {{STORM: {mark}}}, limits: {{{limits}output: 100000}}}}\n"
        );
        self.env.write(&format!("tools/{id}/tool.yaml"), manifest);
        write(&self.env.project().join(format!(".ai/tools/{id}/{file}")), text);
    }

    /// Everything that is left of the storm, as a person would want to read it.
    pub fn left(&self) -> Vec<String> {
        let files =
            fs::read_dir(self.env.tmp()).unwrap().flatten().map(|entry| entry.path().display().to_string());
        self.processes().into_iter().chain(files).chain(dead_groups()).collect()
    }

    /// Waits until nothing is left.
    #[track_caller]
    pub fn nothing_left(&self) {
        let deadline = Instant::now() + Duration::from_secs(15);
        loop {
            let left = self.left();
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "the storm left {left:#?}");
            // A group is cleared up by the next call that needs one. Whose launcher it was cannot be told from its name,
            // so those of other tests are cleared up too.
            if left.iter().any(|it| it.starts_with("group ")) {
                let _ = self.env.run(&["run", "bash_good_limited"]);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Processes that carry the mark; a launcher has nothing but its folder, and who left that, its environment.
    fn processes(&self) -> Vec<String> {
        let own = std::process::id().to_string();
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let numbers = numbers.filter(|name| *name != own && name.bytes().all(|byte| byte.is_ascii_digit()));
        numbers
            .filter_map(|pid| {
                let text = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
                let folder = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
                let texts = [text("cmdline"), text("environ"), folder.into_os_string().into_encoded_bytes()];
                let is_ours = texts.iter().any(|text| String::from_utf8_lossy(text).contains(&self.mark));
                let line = String::from_utf8_lossy(texts.first()?).replace('\0', " ");
                is_ours.then(|| format!("process {pid}: {line}"))
            })
            .collect()
    }
}

/// Control groups of launchers that are gone. Those of others, who run beside this, have theirs.
fn dead_groups() -> BTreeSet<String> {
    let is_dead = |folder: &PathBuf| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let launcher = name.strip_prefix("kiwi-").and_then(|rest| rest.split('-').next());
        launcher.is_some_and(|pid| !Path::new("/proc").join(pid).exists())
    };
    let all = folders(Path::new("/sys/fs/cgroup")).into_iter();
    all.filter(is_dead).map(|folder| format!("group {}", folder.display())).collect()
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let below = below.map(|entry| entry.path());
    below.flat_map(|path| [folders(&path), vec![path]].concat()).collect()
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
