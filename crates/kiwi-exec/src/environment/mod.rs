//! Prepared Python environments: one per interpreter and set of required packages, built once, shared by all tools.
//!
//! A virtual environment knows its own absolute path, so it is built where it stays. What makes that safe is a lock
//! held while building and a marker written last: without the marker a folder is rubbish and is built anew.

mod build;
mod marker;

use kiwi_model::Digest;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde_json::json;
use std::fs::{self, DirBuilder, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::ExecError;
use crate::process::Launcher;
use build::Builder;

/// What is shown while an environment is being built.
pub type Progress<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// Where prepared Python environments are kept, and how they are built.
#[derive(Debug, Clone)]
pub struct PythonEnvironments {
    /// The folder that holds them.
    pub cache: PathBuf,
    /// What runs the installers.
    pub launcher: Launcher,
    /// Where `uv` is looked for.
    pub search_path: String,
}

/// The environment a tool wants.
#[derive(Debug, Clone)]
pub struct PythonWish {
    /// The interpreter it is for.
    pub interpreter: PathBuf,
    /// Packages as `requires` names them.
    pub requires: Vec<String>,
    /// Whether packages without a wheel may be built, which runs their code.
    pub allow_source_builds: bool,
    /// The environment the installers get: proxies, certificates, `PIP_*` and `UV_*` among it.
    pub builder_env: Vec<(String, String)>,
}

/// A prepared environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// Its interpreter.
    pub python: PathBuf,
    /// Exactly what is installed, as `name==version`, sorted.
    pub installed: Vec<String>,
}

impl PythonEnvironments {
    /// The environment, if it is already there.
    pub fn ready(&self, wish: &PythonWish) -> Result<Option<Environment>, ExecError> {
        Ok(marker::read(&self.folder_of(wish)?))
    }

    /// The environment; built when it is not there. Of several callers one builds and the others wait.
    ///
    /// Dropping the future ends the build and leaves nothing that would be used.
    pub async fn prepare(&self, wish: &PythonWish, progress: Progress<'_>) -> Result<Environment, ExecError> {
        for requirement in &wish.requires {
            check_requirement(requirement, wish.allow_source_builds)?;
        }
        let folder = self.folder_of(wish)?;
        if let Some(environment) = marker::read(&folder) {
            return Ok(environment);
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.cache)
            .map_err(ExecError::io("make the folder for prepared environments"))?;
        let lock = lock(&folder.with_extension("lock"), progress).await?;
        // Somebody else may have built it while we waited.
        if let Some(environment) = marker::read(&folder) {
            return Ok(environment);
        }
        let builder = Builder { environments: self, wish, folder: &folder, lock: lock.as_fd(), progress };
        builder.build().await?;
        marker::write(&folder)
    }

    /// Named after everything that decides what is in it.
    fn folder_of(&self, wish: &PythonWish) -> Result<PathBuf, ExecError> {
        let doing = || ExecError::io(format!("find the interpreter `{}`", wish.interpreter.display()));
        let interpreter = fs::canonicalize(&wish.interpreter).map_err(doing())?;
        // An interpreter that was updated in place is another interpreter.
        let file = fs::metadata(&interpreter).map_err(doing())?;
        let mut requires: Vec<&str> = wish.requires.iter().map(|name| name.trim()).collect();
        requires.sort_unstable();
        requires.dedup();
        let identity = json!({
            "interpreter": interpreter.to_string_lossy(),
            "size": file.size(),
            "modified": [file.mtime(), file.mtime_nsec()],
            "requires": requires,
            "allow_source_builds": wish.allow_source_builds,
        });
        let name: String = Digest::of(identity.to_string().as_bytes()).hex().chars().take(32).collect();
        Ok(self.cache.join(name))
    }
}

/// Waits until nobody else builds. The lock ends with the last process that holds it, so a killed Kiwi holds up nobody,
/// and nobody starts before the launcher of a killed Kiwi has cleared up.
async fn lock(path: &Path, progress: Progress<'_>) -> Result<fs::File, ExecError> {
    let doing = || ExecError::io("lock the prepared environment");
    let mut options = OpenOptions::new();
    let file =
        options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path).map_err(doing())?;
    let mut pause = Duration::from_millis(10);
    let mut is_told = false;
    loop {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            Err(errno) => return Err(doing()(errno.into())),
        }
        if !is_told {
            progress("waiting for another process that is preparing the same environment");
            is_told = true;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(200));
    }
}

/// Installers take options, folders and addresses where they take names; a manifest gives names.
fn check_requirement(requirement: &str, allow_source_builds: bool) -> Result<(), ExecError> {
    let text = requirement.trim();
    let refuse = |why| Err(ExecError::BadRequirement { requirement: requirement.to_owned(), why });
    if text.is_empty() || text.contains(['\0', '\n', '\r']) {
        return refuse("it is not the name of a package");
    }
    if text.starts_with('-') {
        return refuse("it would be an option of the installer");
    }
    if text.starts_with(['.', '/', '~']) || text.contains("file:") {
        return refuse("it is a path on this machine");
    }
    let address = text.split(['#', ';']).next().unwrap_or_default().trim_end();
    let is_wheel = Path::new(address).extension().is_some_and(|extension| extension == "whl");
    if text.contains("://") && !is_wheel && !allow_source_builds {
        return refuse("it would be built from source, which needs `allow_source_builds`");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packages_can_be_required() {
        for good in [
            "six",
            "pandas>=2.0",
            "a[b]==1 ; python_version > '3'",
            "x @ https://h/x-1-py3-none-any.whl#sha256=0",
        ] {
            assert!(check_requirement(good, false).is_ok(), "{good}");
        }
        for bad in ["", " ", "-r x", "--index-url=http://h", "./x", "/x", "x @ file:///x.whl", "a\n-r b"] {
            assert!(check_requirement(bad, true).is_err(), "{bad}");
        }
        for source in ["git+https://h/x", "x @ https://h/x.tar.gz"] {
            assert!(check_requirement(source, false).is_err(), "{source}");
            assert!(check_requirement(source, true).is_ok(), "{source}");
        }
    }
}
