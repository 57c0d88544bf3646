//! What the tests of sandboxes share: every backend at every level, and an interpreter to write attempts in.

use kiwi_exec::{Backend, Process};
use kiwi_model::{Isolation, Text};
use std::path::{Path, PathBuf};

use super::{process, shell};

pub const LEVELS: [Isolation; 2] = [Isolation::Sandboxed, Isolation::Restricted];
pub const BACKENDS: [Backend; 2] = [Backend::Native, Backend::Bubblewrap];

/// Every backend at every level with walls.
pub fn walls() -> impl Iterator<Item = (Isolation, Backend)> {
    assert!(
        Path::new("/usr/bin/bwrap").is_file() || Path::new("/bin/bwrap").is_file(),
        "`bwrap` is needed: install the package `bubblewrap`, or run `cargo xtask test`"
    );
    LEVELS.into_iter().flat_map(|level| BACKENDS.into_iter().map(move |backend| (level, backend)))
}

/// The same process behind walls.
pub fn walled(mut asked: Process, (level, backend): (Isolation, Backend)) -> Process {
    asked.isolation = level;
    asked.confinement.backend = backend;
    asked
}

/// The system's Python, which lies in the fixed list.
pub fn python(script: &str) -> Process {
    let mut asked = process("/usr/bin/python3", &["-I", "-c", script]);
    asked.env.push(("LANG".into(), Text::literal("C.UTF-8")));
    asked
}

/// A shell script in a folder of its own.
pub fn shell_in(folder: &Path, script: &str) -> Process {
    Process { cwd: folder.to_owned(), project: folder.to_owned(), ..shell(script) }
}

/// A folder as the kernel names it.
pub fn real(folder: &Path) -> PathBuf {
    std::fs::canonicalize(folder).expect("it exists")
}

/// Whether the tests run as the system's root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
