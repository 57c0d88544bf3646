//! Where the log of a space is, and who vouches for it.

use kiwi_model::{Digest, Space};
use kiwi_space::{Keys, Spaces};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The places of one log.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// The files of the sessions, a folder for each day.
    pub folder: PathBuf,
    /// The chain over all of them. Beside the folder, so that in there is nothing but days.
    pub journal: PathBuf,
    /// Where that chain ends: in the user space, out of reach for whatever works in the project.
    pub head: PathBuf,
    /// Who signs.
    pub keys: Keys,
    /// A file elsewhere that gets each signed checkpoint too.
    pub anchor: Option<PathBuf>,
    /// The space's folder: what a head and its signatures are about.
    pub root: String,
}

impl Place {
    /// The places for these spaces; `None` without a user space, since then nobody can vouch for a log.
    pub fn of(spaces: &Spaces, anchor: Option<PathBuf>) -> Option<Self> {
        let state = spaces.state_root().ok()?;
        let folder = spaces.audit_dir().ok()?;
        let heads = spaces.ai(Space::User)?.join("audit/heads");
        Some(Self::at(state, folder, &heads, spaces.keys().ok()?, anchor))
    }

    fn at(state: &Path, folder: PathBuf, heads: &Path, keys: Keys, anchor: Option<PathBuf>) -> Self {
        Self {
            journal: folder.with_extension("journal"),
            folder,
            head: heads.join(Digest::of(state.as_os_str().as_bytes()).hex()),
            keys,
            anchor,
            root: state.display().to_string(),
        }
    }

    /// The journal as a person would name it.
    pub fn journal_name(&self) -> String {
        self.journal.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }
}
