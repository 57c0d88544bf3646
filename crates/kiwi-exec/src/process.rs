//! What to start, and what came of it.

use kiwi_launcher::wire::Exit;
use kiwi_model::{File, Isolation, Text};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::confinement::Confinement;
use crate::launcher::Door;
use crate::spare::Spares;
use crate::way::Ahead;

/// One process to start: everything is given, nothing is looked up in Kiwi's own environment.
#[derive(Debug, Clone)]
pub struct Process {
    /// The program: an absolute path, a path relative to `cwd`, or a bare name to be found in `search_path`.
    pub program: Text,
    /// Its arguments, one by one. There is no shell between here and the program.
    pub args: Vec<Text>,
    /// Its whole environment. Of two entries with one name the later counts.
    pub env: Vec<(String, Text)>,
    /// The folder it starts in.
    pub cwd: PathBuf,
    /// What it reads from standard input.
    pub stdin: Vec<u8>,
    /// How long it may take.
    pub timeout: Duration,
    /// How many bytes it may write, to standard output and to standard error each.
    pub output_cap: u64,
    /// How tightly it is held.
    pub isolation: Isolation,
    /// What it declared: paths, hosts and limits.
    pub confinement: Confinement,
    /// Whether something in its environment is a secret: then no core file is made of it, at any level.
    pub has_secrets: bool,
    /// The verified files its texts may refer to.
    pub packages: Vec<Package>,
    /// The `PATH` in which a bare program name is found.
    pub search_path: String,
    /// What [`kiwi_model::Piece::Project`] stands for.
    pub project: PathBuf,
}

/// The verified files of one link of the chain.
#[derive(Debug, Clone)]
pub struct Package {
    /// Which link: index into the chain, leaf first.
    pub link: usize,
    /// Its files.
    pub files: Vec<File>,
    /// Whether the files belong together.
    pub form: PackageForm,
}

/// Whether a tool is one file or a folder whose files expect to lie beside each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackageForm {
    /// A single file; it runs from sealed memory.
    OneFile,
    /// A folder; it runs from a private copy made for this run.
    Folder,
}

/// How processes are started: which program supervises them and where their files may be put.
#[derive(Debug, Clone)]
pub struct Launcher {
    /// How launchers are started.
    pub(crate) door: Door,
    /// Where private copies of packages are made. Created when missing; nothing in it outlives a run.
    pub scratch: PathBuf,
    /// How long a process has between being asked to end and being killed.
    pub grace: Duration,
    /// Where it is remembered that sandboxes can be built here.
    pub(crate) memory: Option<PathBuf>,
    /// A launcher that was started ahead of the process it is for.
    pub(crate) ahead: Ahead,
    /// Launchers that wait for their orders, and sandboxes that were built ahead.
    pub(crate) spares: Spares,
}

impl Launcher {
    /// The grace the specification asks for.
    pub const GRACE: Duration = Duration::from_secs(5);
    /// The first argument by which a program knows that it is to be the launcher.
    pub const ARGUMENT: &'static str = kiwi_launcher::ARGUMENT;

    /// A launcher with the ordinary grace. `kiwi` is the Kiwi binary: the program that calls [`crate::launcher_main`] when
    /// its first argument is `__launch`. It carries a program along that does the same sooner, wherever that is possible.
    pub fn new(kiwi: impl Into<PathBuf>, scratch: impl Into<PathBuf>) -> Self {
        Self {
            door: Door { kiwi: kiwi.into(), instead: None },
            scratch: scratch.into(),
            grace: Self::GRACE,
            memory: None,
            ahead: Ahead::default(),
            spares: Spares::default(),
        }
    }

    /// The same, by this program and no other, if one is given.
    #[must_use]
    pub fn by(mut self, program: Option<PathBuf>) -> Self {
        self.door.instead = program;
        self
    }

    /// The same, with a folder in which it is remembered what trials of sandboxes came to. It has nothing else in it.
    #[must_use]
    pub fn remembering(mut self, folder: Option<PathBuf>) -> Self {
        self.memory = folder;
        self
    }

    /// The Kiwi binary.
    pub fn kiwi(&self) -> &Path {
        &self.door.kiwi
    }

    /// The same launcher with another grace.
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }
}

/// One of the two streams a process writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output: the result.
    Stdout,
    /// Standard error: everything else.
    Stderr,
}

impl std::fmt::Display for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Stdout => "standard output",
            Self::Stderr => "standard error",
        })
    }
}

/// Sees output while the process is still running.
pub trait Watch: Send + Sync {
    /// Bytes as they came; never more than the cap in all.
    fn output(&self, stream: Stream, bytes: &[u8]);
}

/// For a process nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn output(&self, _: Stream, _: &[u8]) {}
}

/// A process that ended by itself, with everything it started ended too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub exit: Exit,
    /// What it wrote to standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error.
    pub stderr: Vec<u8>,
}
