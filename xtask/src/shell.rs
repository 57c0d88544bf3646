//! Starting other programs: the one place in xtask that does.

use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// The root of the repository.
pub fn root() -> Result<PathBuf> {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let root = match manifest.as_deref().and_then(Path::parent) {
        Some(root) => root.to_owned(),
        None => std::env::current_dir()?,
    };
    if !root.join("xtask/Cargo.toml").is_file() {
        bail!("start this as `cargo xtask …` inside the repository");
    }
    Ok(root)
}

/// Where xtask keeps what it downloads and builds for itself.
pub fn cache() -> Result<PathBuf> {
    let cache = root()?.join("target/xtask");
    std::fs::create_dir_all(&cache).with_context(|| format!("cannot make {}", cache.display()))?;
    Ok(cache)
}

/// The first program of that name on the path.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// A program about to be started in the root of the repository.
pub struct Shell {
    command: Command,
    shown: String,
}

impl Shell {
    /// Any program. What cargo says of xtask stays here: build scripts that watch over such variables would run again, and all
    /// that rests on them, whenever a cargo that was started from here follows one that was not.
    pub fn new(program: impl Into<OsString>) -> Result<Self> {
        let program = program.into();
        let mut command = Command::new(&program);
        command.current_dir(root()?);
        let is_about_xtask = |name: &OsString| {
            ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|about| name.to_string_lossy().starts_with(about))
        };
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_about_xtask(name)) {
            command.env_remove(name);
        }
        let shown = Path::new(&program).file_name().unwrap_or(&program).to_string_lossy().into_owned();
        Ok(Self { command, shown })
    }

    /// The cargo that started xtask.
    pub fn cargo() -> Result<Self> {
        let mut shell = Self::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))?;
        "cargo".clone_into(&mut shell.shown);
        Ok(shell)
    }

    /// Adds arguments.
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        for arg in args {
            let arg = arg.into();
            self.shown.push(' ');
            self.shown.push_str(&arg.to_string_lossy());
            self.command.arg(arg);
        }
        self
    }

    /// Sets a variable.
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.command.env(name, value.into());
        self
    }

    /// Puts a folder first on the path.
    pub fn path_first(self, folder: &Path) -> Result<Self> {
        let old = std::env::var_os("PATH").unwrap_or_default();
        let path =
            std::env::join_paths(std::iter::once(folder.to_owned()).chain(std::env::split_paths(&old)))?;
        Ok(self.env("PATH", path))
    }

    /// Runs it with this terminal; anything but success is an error.
    pub fn run(mut self) -> Result<()> {
        let status = self.command.status().with_context(|| format!("cannot start `{}`", self.shown))?;
        self.judge(status)
    }

    /// Runs it and returns what it printed on stdout.
    pub fn read(mut self) -> Result<String> {
        self.command.stderr(Stdio::inherit());
        let output = self.command.output().with_context(|| format!("cannot start `{}`", self.shown))?;
        self.judge(output.status)?;
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Runs it, passes everything it prints through, and hands each line to `see` as well.
    pub fn watch(mut self, mut see: impl FnMut(&str)) -> Result<()> {
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().with_context(|| format!("cannot start `{}`", self.shown))?;
        let (sender, lines) = std::sync::mpsc::channel();
        let out = child.stdout.take().map(|pipe| pass(pipe, std::io::stdout(), sender.clone()));
        let err = child.stderr.take().map(|pipe| pass(pipe, std::io::stderr(), sender));
        for line in lines {
            see(&line);
        }
        for thread in [out, err].into_iter().flatten() {
            thread.join().ok().context("a reader of output died")??;
        }
        let status = child.wait()?;
        self.judge(status)
    }

    fn judge(&self, status: ExitStatus) -> Result<()> {
        if status.success() { Ok(()) } else { bail!("`{}` failed: {status}", self.shown) }
    }
}

type Reader = std::thread::JoinHandle<std::io::Result<()>>;

fn pass(
    from: impl Read + Send + 'static,
    mut to: impl Write + Send + 'static,
    see: std::sync::mpsc::Sender<String>,
) -> Reader {
    std::thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line)? > 0 {
            to.write_all(&line)?;
            to.flush()?;
            // A receiver that is gone has seen enough.
            let _ = see.send(String::from_utf8_lossy(&line).into_owned());
            line.clear();
        }
        Ok(())
    })
}
