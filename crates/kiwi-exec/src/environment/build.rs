//! Building an environment with uv, or with the interpreter's own venv and pip.

use kiwi_model::{Isolation, Text};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::{Progress, PythonEnvironments, PythonWish, marker};
use crate::error::ExecError;
use crate::process::{Finished, Process, Stream, Watch};
use crate::which::ProgramSearch;

/// Large wheels over a slow line take long.
const TIMEOUT: Duration = Duration::from_mins(30);
const OUTPUT_CAP: u64 = 16 << 20;
/// How much of what an installer wrote is worth showing.
const SHOWN_LINES: usize = 12;

/// One environment being built, by whoever holds its lock.
pub struct Builder<'a> {
    pub environments: &'a PythonEnvironments,
    pub wish: &'a PythonWish,
    pub folder: &'a Path,
    /// Handed on to the installers' launcher: the folder stays locked until the last of them has ended.
    pub lock: BorrowedFd<'a>,
    pub progress: Progress<'a>,
}

impl Builder<'_> {
    /// Fills the folder. It is not complete before the marker is written.
    pub async fn build(&self) -> Result<(), ExecError> {
        let versions = BTreeMap::new();
        let search = ProgramSearch {
            path: &self.environments.search_path,
            cwd: &self.environments.cache,
            versions: &versions,
        };
        if let Some(uv) = search.find("uv") {
            match self.with_uv(&uv).await {
                Err(ExecError::EnvironmentFailed { .. }) => (self.progress)("uv failed; trying pip"),
                other => return other,
            }
        }
        self.with_pip().await
    }

    async fn with_uv(&self, uv: &Path) -> Result<(), ExecError> {
        self.clear()?;
        let python = marker::python_of(self.folder);
        let mut venv = arguments(&["venv", "--no-project", "--quiet", "--python"]);
        venv.extend([path(&self.wish.interpreter)?, path(self.folder)?]);
        self.step("uv", uv, venv).await?;
        if self.wish.requires.is_empty() {
            return Ok(());
        }
        let mut install = arguments(&["pip", "install", "--no-progress", "--python"]);
        install.push(path(&python)?);
        install.extend(self.packages());
        self.step("uv", uv, install).await
    }

    async fn with_pip(&self) -> Result<(), ExecError> {
        self.clear()?;
        // -I: neither the working folder nor PYTHON* variables may slip in modules.
        let mut venv = arguments(&["-I", "-m", "venv"]);
        if self.wish.requires.is_empty() {
            venv.push(Text::literal("--without-pip"));
        }
        venv.push(path(self.folder)?);
        self.step("venv", &self.wish.interpreter, venv).await?;
        if self.wish.requires.is_empty() {
            return Ok(());
        }
        let mut install =
            arguments(&["-I", "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]);
        install.push(Text::literal("--progress-bar=off"));
        install.extend(self.packages());
        self.step("pip", &marker::python_of(self.folder), install).await
    }

    fn packages(&self) -> Vec<Text> {
        let wheels: &[&str] = if self.wish.allow_source_builds { &[] } else { &["--only-binary", ":all:"] };
        let names = self.wish.requires.iter().map(|name| Text::literal(name.trim()));
        arguments(wheels).into_iter().chain([Text::literal("--")]).chain(names).collect()
    }

    /// Removes what an interrupted build left.
    fn clear(&self) -> Result<(), ExecError> {
        match fs::remove_dir_all(self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(ExecError::io("remove an unfinished environment")(error))
            }
            _ => Ok(()),
        }
    }

    async fn step(&self, installer: &str, program: &Path, args: Vec<Text>) -> Result<(), ExecError> {
        let process = Process {
            program: path(program)?,
            args,
            env: self
                .wish
                .builder_env
                .iter()
                .map(|(name, value)| (name.clone(), Text::literal(value)))
                .collect(),
            cwd: self.environments.cache.clone(),
            stdin: Vec::new(),
            timeout: TIMEOUT,
            output_cap: OUTPUT_CAP,
            isolation: Isolation::Standard,
            packages: Vec::new(),
            search_path: String::new(),
            project: self.environments.cache.clone(),
        };
        let lines = Lines { tell: self.progress, open: Mutex::default() };
        let launcher = &self.environments.launcher;
        let finished = launcher.run_holding(process, Some(self.lock), &lines, std::future::pending()).await?;
        if finished.exit.is_success() {
            return Ok(());
        }
        let requires = self.wish.requires.clone();
        Err(ExecError::EnvironmentFailed {
            requires,
            installer: installer.to_owned(),
            output: last_words(&finished),
        })
    }
}

fn arguments(texts: &[&str]) -> Vec<Text> {
    texts.iter().map(|text| Text::literal(*text)).collect()
}

fn path(path: &Path) -> Result<Text, ExecError> {
    path.to_str().map(Text::literal).ok_or_else(|| {
        ExecError::io(format!("use the path `{}`", path.display()))(io::Error::other("it is not UTF-8"))
    })
}

/// The end of what an installer wrote; errors go to standard error, but not all of them.
fn last_words(finished: &Finished) -> String {
    let stderr = String::from_utf8_lossy(&finished.stderr);
    let stdout = String::from_utf8_lossy(&finished.stdout);
    let told = if stderr.trim().is_empty() { stdout } else { stderr };
    let lines: Vec<&str> = told.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines.get(lines.len().saturating_sub(SHOWN_LINES)..).unwrap_or_default().join("\n")
}

/// Tells what an installer writes, line by line.
struct Lines<'a> {
    tell: Progress<'a>,
    /// The beginning of a line on each stream.
    open: Mutex<[Vec<u8>; 2]>,
}

impl Watch for Lines<'_> {
    fn output(&self, stream: Stream, bytes: &[u8]) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let [stdout, stderr] = &mut *open;
        let line = match stream {
            Stream::Stdout => stdout,
            Stream::Stderr => stderr,
        };
        for byte in bytes {
            if !matches!(byte, b'\n' | b'\r') {
                line.push(*byte);
                continue;
            }
            let text = String::from_utf8_lossy(line).trim().to_owned();
            line.clear();
            if !text.is_empty() {
                (self.tell)(&text);
            }
        }
    }
}
