//! Building an environment: what all installers have in common.

use kiwi_model::{Isolation, Language, Pin, Text};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::{Environments, Progress, Wanted, Wish, installed, pins};
use crate::begin::Held;
use crate::confinement::Confinement;
use crate::error::ExecError;
use crate::process::{Finished, Process, Stream, Watch};
use crate::which::ProgramSearch;

/// Large packages over a slow line take long.
const TIMEOUT: Duration = Duration::from_mins(30);
const OUTPUT_CAP: u64 = 16 << 20;
/// How much of what an installer wrote is worth showing.
const SHOWN_LINES: usize = 12;

/// One environment being built, by whoever holds its lock.
#[derive(Clone, Copy)]
pub struct Builder<'a> {
    pub environments: &'a Environments,
    pub wish: &'a Wish,
    pub folder: &'a Path,
    /// Handed on to the installers' launcher: the folder stays locked until the last of them has ended.
    pub lock: BorrowedFd<'a>,
    pub progress: Progress<'a>,
}

impl Builder<'_> {
    /// Fills the folder and says what is in it. It is not complete before the marker is written.
    pub async fn build(&self) -> Result<Vec<Pin>, ExecError> {
        let mut scrap = Scrap(Some(self.folder));
        let installed = self.fill().await?;
        scrap.0 = None;
        Ok(installed)
    }

    async fn fill(&self) -> Result<Vec<Pin>, ExecError> {
        match self.wish.language {
            Language::Python => self.build_python().await?,
            Language::Node => self.build_node().await?,
        }
        let installed = self.installed().await?;
        if let Wanted::Pinned(pinned) = &self.wish.packages {
            pins::compare(self.wish.language, pinned, &installed)?;
        }
        Ok(installed)
    }

    /// Reading every file takes a while, so others may go on meanwhile.
    async fn installed(&self) -> Result<Vec<Pin>, ExecError> {
        let (language, folder) = (self.wish.language, self.folder.to_owned());
        let listing = tokio::task::spawn_blocking(move || installed::list(language, &folder));
        let listed = listing.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        listed.map_err(ExecError::io("list what was installed"))
    }

    /// An installer on the search path.
    pub fn find(&self, program: &str) -> Result<PathBuf, ExecError> {
        let versions = BTreeMap::new();
        let search = ProgramSearch {
            path: &self.environments.search_path,
            cwd: &self.environments.cache,
            versions: &versions,
        };
        search.find(program).ok_or_else(|| search.explain_missing(program))
    }

    /// Removes what an interrupted build left.
    pub fn clear(&self) -> Result<(), ExecError> {
        remove(self.folder)
    }

    /// Runs an installer in a folder and expects success.
    pub async fn step(
        &self,
        installer: &str,
        cwd: &Path,
        program: &Path,
        args: Vec<Text>,
    ) -> Result<(), ExecError> {
        let finished = self.run(cwd, program, args).await?;
        if finished.exit.is_success() {
            return Ok(());
        }
        Err(ExecError::EnvironmentFailed {
            requires: self.wish.packages.texts(),
            installer: installer.to_owned(),
            output: last_words(&finished),
        })
    }

    /// Runs an installer in a folder.
    pub async fn run(&self, cwd: &Path, program: &Path, args: Vec<Text>) -> Result<Finished, ExecError> {
        let process = Process {
            program: path_text(program)?,
            args,
            env: self.variables(),
            cwd: cwd.to_owned(),
            stdin: Vec::new(),
            timeout: TIMEOUT,
            output_cap: OUTPUT_CAP,
            isolation: Isolation::Standard,
            confinement: Confinement::default(),
            has_secrets: false,
            packages: Vec::new(),
            search_path: String::new(),
            project: self.environments.cache.clone(),
        };
        let lines = Lines::new(self.progress);
        let launcher = &self.environments.launcher;
        let held = Held { lock: Some(self.lock), scrap: Some(self.folder) };
        launcher.run_holding(process, held, &lines, std::future::pending()).await
    }

    /// What the installers get. npm is a script, which has to find the Node it installs for.
    fn variables(&self) -> Vec<(String, Text)> {
        let mut variables: BTreeMap<String, String> = self.wish.builder_env.iter().cloned().collect();
        if self.wish.language == Language::Node
            && let Some(folder) = self.wish.interpreter.parent().and_then(Path::to_str)
        {
            let path = variables.entry("PATH".into()).or_default();
            *path = if path.is_empty() { folder.to_owned() } else { format!("{folder}:{path}") };
        }
        variables.into_iter().map(|(name, value)| (name, Text::literal(value))).collect()
    }
}

/// What a build that fails, or is given up, has come to: it is of no use, and may be what the disk is full of. What an
/// installer still writes is removed by its launcher, and what cannot be removed has no marker.
struct Scrap<'a>(Option<&'a Path>);

impl Drop for Scrap<'_> {
    fn drop(&mut self) {
        if let Some(folder) = self.0 {
            let _ = remove(folder);
        }
    }
}

/// Removes a folder, if it is there.
pub fn remove(folder: &Path) -> Result<(), ExecError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(ExecError::io("remove an unfinished environment")(error))
        }
        _ => Ok(()),
    }
}

/// Arguments as they are.
pub fn arguments(texts: &[&str]) -> Vec<Text> {
    texts.iter().map(|text| Text::literal(*text)).collect()
}

/// A path as an argument.
pub fn path_text(path: &Path) -> Result<Text, ExecError> {
    path.to_str().map(Text::literal).ok_or_else(|| {
        ExecError::io(format!("use the path `{}`", path.display()))(io::Error::other("it is not UTF-8"))
    })
}

/// The end of what an installer wrote; errors go to standard error, but not all of them.
pub fn last_words(finished: &Finished) -> String {
    let stderr = String::from_utf8_lossy(&finished.stderr);
    let stdout = String::from_utf8_lossy(&finished.stdout);
    let told = if stderr.trim().is_empty() { stdout } else { stderr };
    let lines: Vec<&str> = told.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines.get(lines.len().saturating_sub(SHOWN_LINES)..).unwrap_or_default().join("\n")
}

/// Tells what an installer writes, line by line.
pub struct Lines<'a> {
    tell: Progress<'a>,
    /// The beginning of a line on each stream.
    open: Mutex<[Vec<u8>; 2]>,
}

impl<'a> Lines<'a> {
    pub fn new(tell: Progress<'a>) -> Self {
        Self { tell, open: Mutex::default() }
    }
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
