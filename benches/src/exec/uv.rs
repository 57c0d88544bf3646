//! What a person would start such a script with instead: `uv run`, with everything it needs already there.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::words::{PACKAGES, Words};

/// A project with a lock and an installed environment, and a filled cache.
pub struct Uv<'a> {
    program: &'a Path,
    words: &'a Words,
    cache: PathBuf,
    /// The interpreter that Kiwi's environment is made from.
    base: PathBuf,
}

impl<'a> Uv<'a> {
    /// Locks, installs, and fills the cache.
    pub fn prepare(program: &'a Path, words: &'a Words, cache: PathBuf) -> Result<Self> {
        let base = std::fs::canonicalize(&words.python).context("the environment has no interpreter")?;
        let uv = Self { program, words, cache, base };
        let project = format!(
            "[project]\nname = \"words\"\nversion = \"1.0.0\"\nrequires-python = \">=3.9\"\ndependencies = {PACKAGES:?}\n"
        );
        std::fs::write(words.folder.join("pyproject.toml"), project)?;
        let output = uv.command("sync").current_dir(&words.folder).output().context("cannot start uv")?;
        if !output.status.success() {
            bail!("`uv sync` failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        uv.with()?;
        Ok(uv)
    }

    /// Its fastest form: the environment is taken as it is, nothing is compared with the lock.
    pub fn locked(&self) -> Result<()> {
        self.words.without(self.run().args(["--frozen", "--no-sync", "python"]).args(self.words.arguments()))
    }

    /// Its form without a project.
    pub fn with(&self) -> Result<()> {
        let mut command = self.run();
        command.arg("--no-project");
        for package in PACKAGES {
            command.args(["--with", package]);
        }
        self.words.without(command.arg("python").args(self.words.arguments()))
    }

    fn run(&self) -> Command {
        let mut command = self.command("run");
        // Before the cache is filled it has to ask.
        if self.cache.join("archive-v0").is_dir() {
            command.arg("--offline");
        }
        command
    }

    fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(self.program);
        command.arg(verb).arg("--quiet").env_remove("VIRTUAL_ENV");
        command.env("UV_CACHE_DIR", &self.cache).env("UV_PYTHON", &self.base);
        command.env("UV_PYTHON_DOWNLOADS", "never").env("UV_COMPILE_BYTECODE", "1");
        command
    }
}
