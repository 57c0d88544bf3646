//! The first files of a project.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::durable;
use crate::error::SpaceError;
use crate::spaces::AI;

const FOLDERS: [&str; 6] = ["tools", "directives", "knowledge", "rules", "lockfiles", "config"];

const CONFIG: &str = include_str!("scaffold/kiwi.toml");
const PYTHON_TOOL: &str = include_str!("scaffold/hello.py");
const BASH_TOOL: &str = include_str!("scaffold/greet.sh");
const RULE: &str = include_str!("scaffold/project.kappa");

const FILES: [(&str, &str); 4] = [
    ("config/kiwi.toml", CONFIG),
    ("rules/project.kappa", RULE),
    ("tools/examples/greet.sh", BASH_TOOL),
    ("tools/examples/hello.py", PYTHON_TOOL),
];

/// State: what a machine makes, not what a team shares.
const IGNORED: [&str; 4] = [".ai/logs/", ".ai/sessions/", ".ai/vectors/", ".ai/cache/"];

/// One thing that `scaffold` made or found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// Where.
    pub path: PathBuf,
    /// What happened.
    pub outcome: Outcome,
}

/// What became of a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is new.
    Made,
    /// It was there and was left alone.
    Kept,
    /// It was there and got lines at its end.
    Extended,
}

/// Lays out `.ai/` in a folder. Nothing that is there is overwritten; a second time nothing changes.
pub fn scaffold(folder: &Path) -> Result<Vec<Created>, SpaceError> {
    let ai = folder.join(AI);
    let mut created = Vec::new();
    for name in FOLDERS {
        let path = ai.join(name);
        let outcome = if path.is_dir() { Outcome::Kept } else { Outcome::Made };
        durable::make_folder(&path)?;
        created.push(Created { path, outcome });
    }
    for (name, text) in FILES {
        let path = ai.join(name);
        let outcome = make_file(&path, text)?;
        created.push(Created { path, outcome });
    }
    created.push(ignore(folder)?);
    Ok(created)
}

/// Writes a file that is not there; whole or not at all.
fn make_file(path: &Path, text: &str) -> Result<Outcome, SpaceError> {
    if path.symlink_metadata().is_ok() {
        return Ok(Outcome::Kept);
    }
    let folder = path.parent().unwrap_or(path);
    durable::make_folder(folder)?;
    let unwritable = |error| SpaceError::unwritable(path, error);
    let mode =
        std::os::unix::fs::PermissionsExt::from_mode(if text.starts_with("#!") { 0o755 } else { 0o644 });
    let mut file =
        tempfile::Builder::new().prefix(".new-").permissions(mode).tempfile_in(folder).map_err(unwritable)?;
    file.write_all(text.as_bytes()).map_err(unwritable)?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(Outcome::Made),
        Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => Ok(Outcome::Kept),
        Err(error) => Err(unwritable(error.error)),
    }
}

fn ignore(folder: &Path) -> Result<Created, SpaceError> {
    let path = folder.join(".gitignore");
    let unwritable = |error| SpaceError::unwritable(&path, error);
    let before = match std::fs::read(&path) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(SpaceError::unreadable(&path, error)),
    };
    let text = String::from_utf8_lossy(before.as_deref().unwrap_or_default()).into_owned();
    let has = |wanted: &str| {
        text.lines().any(|line| {
            line.trim().trim_start_matches('/').trim_end_matches('/') == wanted.trim_end_matches('/')
        })
    };
    let missing: Vec<&str> = IGNORED.into_iter().filter(|wanted| !has(wanted)).collect();
    let outcome = match (&before, missing.is_empty()) {
        (_, true) => Outcome::Kept,
        (None, false) => Outcome::Made,
        (Some(_), false) => Outcome::Extended,
    };
    if !missing.is_empty() {
        let mut lines = String::new();
        if !text.is_empty() && !text.ends_with('\n') {
            lines.push('\n');
        }
        lines.push_str("# Kiwi: state of this machine\n");
        for line in missing {
            lines.extend([line, "\n"]);
        }
        let mut file = File::options().create(true).append(true).open(&path).map_err(unwritable)?;
        file.write_all(lines.as_bytes()).map_err(unwritable)?;
    }
    Ok(Created { path, outcome })
}
