//! A hermetic place to run the real program in: its own home, project and environment.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and drives the real program"
)]
#![allow(dead_code, reason = "each test file uses its part")]

pub mod closed;
pub mod engines;
pub mod kernel;
pub mod keyring;
pub mod leaks;
pub mod mcp;
pub mod registry;
pub mod secure;
pub mod server;
pub mod storm;
pub mod subject;
pub mod terminal;

use kiwi_model::{Space, ToolId, Version};
use kiwi_space::{Install, Locations, NewFile, Spaces, Staged};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub struct TestEnvironment {
    folder: tempfile::TempDir,
}

/// What a command came to.
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl TestEnvironment {
    /// An empty project with `.ai/`.
    pub fn new() -> Self {
        let env = Self::bare();
        std::fs::create_dir_all(env.project().join(".ai/tools")).unwrap();
        env
    }

    /// A folder without a project.
    pub fn bare() -> Self {
        // Not below `/tmp`: a sandbox has one of its own, where a tool may do anything, and what is allowed elsewhere would
        // not show.
        let folder = tempfile::Builder::new().prefix("kiwi-test-").tempdir_in("/var/tmp").unwrap();
        for name in ["project", "home", "tmp"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    pub fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub fn tmp(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }

    /// Writes a file below the project's `.ai/`.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        write(&self.project().join(".ai").join(path), content)
    }

    /// Writes a file below the user's `.ai/`.
    pub fn write_user(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        write(&self.home().join(".ai").join(path), content)
    }

    /// Installs a package of the project with its record, as the registry will.
    pub fn install(&self, id: &str, version: &str, files: &[(&str, &str)]) -> PathBuf {
        let spaces =
            Spaces::open(Locations { project: None, cwd: self.project(), user: Some(self.home()) }).unwrap();
        let files: Vec<_> = files
            .iter()
            .map(|(path, text)| NewFile { path, bytes: text.as_bytes(), is_executable: false })
            .collect();
        let install = Install {
            id: &ToolId::parse(id).unwrap(),
            version: &Version::parse(version).unwrap(),
            files: Staged::Memory(&files),
            source: "test",
            at: "2026-01-01T00:00:00Z",
            expected: None,
        };
        spaces.packages(Space::Project).unwrap().install(&install).unwrap().folder
    }

    /// The program with this environment and nothing else.
    pub fn command(&self, words: &[&str]) -> Command {
        self.start(env!("CARGO_BIN_EXE_kiwi"), words)
    }

    /// Any program with this environment and nothing else.
    pub fn start(&self, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(words).current_dir(self.project()).env_clear();
        for name in [
            "PATH",
            "PIP_CERT",
            "PIP_FIND_LINKS",
            "PIP_INDEX_URL",
            "SSL_CERT_FILE",
            "NODE_EXTRA_CA_CERTS",
            "npm_config_registry",
        ] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.env("HOME", self.home()).env("TMPDIR", self.tmp()).env("USER", "tester").stdin(Stdio::null());
        command
    }

    pub fn run(&self, words: &[&str]) -> Ran {
        ran(&self.command(words).output().unwrap())
    }

    pub fn run_with_input(&self, words: &[&str], input: &str) -> Ran {
        feed(&mut self.command(words), input)
    }

    /// Runs with `--json` and returns the one object.
    #[track_caller]
    pub fn json(&self, words: &[&str]) -> (i32, Value) {
        let ran = self.run(&[words, &["--json"]].concat());
        match serde_json::from_str(&ran.stdout) {
            Ok(value) => (ran.code, value),
            Err(error) => unreadable(words, &ran, &error),
        }
    }

    /// Every line of the audit log, in order of time.
    pub fn audit(&self) -> Vec<Value> {
        let mut lines = Vec::new();
        for root in [self.project(), self.home()] {
            for day in std::fs::read_dir(root.join(".ai/logs/audit")).into_iter().flatten().flatten() {
                for file in std::fs::read_dir(day.path()).unwrap().flatten() {
                    let text = std::fs::read_to_string(file.path()).unwrap();
                    lines.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
                }
            }
        }
        lines.sort_by_key(|line| line["at"].as_str().unwrap().to_owned());
        lines
    }
}

#[track_caller]
fn unreadable(words: &[&str], ran: &Ran, error: &serde_json::Error) -> ! {
    panic!(
        "{words:?} exited {} and printed no JSON object ({error}):\n{}\n{}",
        ran.code, ran.stdout, ran.stderr
    )
}

pub fn write(path: &Path, content: impl AsRef<[u8]>) -> PathBuf {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
    path.to_owned()
}

/// Runs a command that reads this.
pub fn feed(command: &mut Command, input: &str) -> Ran {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // One that refuses at once does not read it.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    ran(&child.wait_with_output().unwrap())
}

pub fn ran(output: &Output) -> Ran {
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Processes whose command line holds `marker`.
pub fn processes(marker: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(line) = std::fs::read(entry.path().join("cmdline")) else { continue };
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(marker) && entry.file_name().to_string_lossy() != std::process::id().to_string() {
            found.push(line);
        }
    }
    found
}

/// How many rounds a storm has: a tenth here, all of them in `cargo xtask soak`.
pub fn rounds(full: usize) -> usize {
    if std::env::var_os("KIWI_SOAK").is_some() { full } else { full / 10 }
}
