//! Prepared environments of language packages: one per interpreter and set of packages, built once, shared by all tools.
//!
//! A virtual environment knows its own absolute path, so every environment is built where it stays. What makes that
//! safe is a lock held while building and a marker written last: without the marker a folder is rubbish and is built
//! anew.

mod build;
mod contents;
mod identity;
mod installed;
mod interpreter;
mod kept;
mod lock;
mod marker;
mod node;
mod pins;
mod python;
mod requirement;
mod usage;

use kiwi_model::{Language, Pin};
use std::fs::DirBuilder;
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::error::ExecError;
use crate::process::Launcher;
use build::Builder;

pub(crate) use build::{Lines, last_words};
pub(crate) use identity::{name, of_program};
pub use kept::{KeptEnvironment, KeptInterpreter};
pub(crate) use lock::lock;
pub use pins::PinDifference;
pub(crate) use usage::note_use;

/// What is shown while an environment is being built.
pub type Progress<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// Where prepared environments are kept, and how they are built.
#[derive(Debug, Clone)]
pub struct Environments {
    /// The folder that holds them, each language in a folder of its own.
    pub cache: PathBuf,
    /// What runs the installers.
    pub launcher: Launcher,
    /// Where `uv` and `npm` are looked for.
    pub search_path: String,
}

/// The environment a tool wants.
#[derive(Debug, Clone)]
pub struct Wish {
    /// Whose packages.
    pub language: Language,
    /// The interpreter it is for.
    pub interpreter: PathBuf,
    /// What is to be in it.
    pub packages: Wanted,
    /// Whether packages may be built or run scripts of theirs while they are installed.
    pub allow_source_builds: bool,
    /// The environment the installers get: proxies, certificates, `PIP_*`, `UV_*` and `npm_config_*` among it.
    pub builder_env: Vec<(String, String)>,
}

/// Packages that are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// As `requires` names them, with whatever they depend on.
    Named(Vec<String>),
    /// Exactly these and nothing else.
    Pinned(Vec<Pin>),
}

impl Wanted {
    /// Each package as text.
    fn texts(&self) -> Vec<String> {
        match self {
            Self::Named(names) => names.iter().map(|name| name.trim().to_owned()).collect(),
            Self::Pinned(pins) => pins.iter().map(ToString::to_string).collect(),
        }
    }

    const fn is_empty(&self) -> bool {
        match self {
            Self::Named(names) => names.is_empty(),
            Self::Pinned(pins) => pins.is_empty(),
        }
    }
}

/// A prepared environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// What to start: the interpreter of a virtual environment, or Node itself.
    pub program: PathBuf,
    /// The `node_modules` folder, for `NODE_PATH`.
    pub modules: Option<PathBuf>,
    /// The exact version of the interpreter, such as `3.11.7`.
    pub interpreter: String,
    /// Exactly what is installed, sorted.
    pub installed: Vec<Pin>,
}

impl Environments {
    /// The environment, if it is already there.
    pub fn ready(&self, wish: &Wish) -> Result<Option<Environment>, ExecError> {
        Ok(marker::read(&self.folder_of(wish)?, wish))
    }

    /// The environment; built when it is not there. Of several callers one builds and the others wait.
    ///
    /// Dropping the future ends the build and leaves nothing that would be used.
    pub async fn prepare(&self, wish: &Wish, progress: Progress<'_>) -> Result<Environment, ExecError> {
        requirement::check(wish)?;
        let folder = self.folder_of(wish)?;
        if let Some(environment) = marker::read(&folder, wish) {
            return Ok(environment);
        }
        make_private(&self.cache.join(wish.language.as_str()))?;
        let lock = lock(&folder.with_extension("lock"), progress).await?;
        // Somebody else may have built it while we waited.
        if let Some(environment) = marker::read(&folder, wish) {
            return Ok(environment);
        }
        let interpreter = self.version_of(wish.language, &wish.interpreter).await?;
        let builder = Builder { environments: self, wish, folder: &folder, lock: lock.as_fd(), progress };
        let installed = builder.build().await?;
        marker::write(&folder, wish, interpreter, installed)
    }

    /// Named after everything that decides what is in it.
    fn folder_of(&self, wish: &Wish) -> Result<PathBuf, ExecError> {
        Ok(self.cache.join(wish.language.as_str()).join(identity::of_wish(wish)?))
    }
}

/// Makes a folder that only its owner can look into.
pub(crate) fn make_private(folder: &Path) -> Result<(), ExecError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(ExecError::io("make the folder for prepared environments"))
}
