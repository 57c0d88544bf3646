//! What clients' files were before Kiwi was in them.

use kiwi_model::{Digest, Space};
use kiwi_space::{PrivateFolder, SpaceError, Spaces};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::error::McpError;

const FOLDER: &str = "clients";

/// One file that Kiwi has changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    /// Whose it is.
    pub(super) client: String,
    pub(super) file: PathBuf,
    /// What it was; none where it was not there.
    pub(super) before: Option<Digest>,
    /// What it became.
    pub(super) after: Digest,
    /// The entry that had Kiwi's name already.
    pub(super) replaced: Option<Value>,
    /// Folders that were made for it, innermost first.
    pub(super) folders: Vec<PathBuf>,
}

/// The records, in the user space.
#[derive(Debug)]
pub(super) struct Records(PrivateFolder);

impl Records {
    pub(super) fn new(spaces: &Spaces) -> Result<Self, McpError> {
        let user = spaces.ai(Space::User).ok_or(SpaceError::NoSpace { space: Space::User })?;
        Ok(Self(PrivateFolder::new(user.join(FOLDER))))
    }

    pub(super) fn read(&self, file: &Path) -> Result<Option<Record>, McpError> {
        if !self.0.exists()? {
            return Ok(None);
        }
        let name = name(file);
        let Some(bytes) = self.0.read(&name)? else { return Ok(None) };
        let record = serde_json::from_slice::<Record>(&bytes).ok().filter(|record| record.file == file);
        record.map(Some).ok_or_else(|| McpError::BadEntry {
            problem: format!("what is noted about `{}` cannot be read", file.display()),
            hint: format!(
                "remove `{}`; the copy beside the file is not touched",
                self.0.file(&name).display()
            ),
        })
    }

    pub(super) fn write(&self, record: &Record) -> Result<(), McpError> {
        let bytes = serde_json::to_vec_pretty(record)
            .map_err(|error| McpError::Store { problem: error.to_string() })?;
        Ok(self.0.write(&name(&record.file), &bytes)?)
    }

    pub(super) fn remove(&self, file: &Path) -> Result<(), McpError> {
        self.0.remove(&name(file))?;
        Ok(())
    }
}

fn name(file: &Path) -> String {
    format!("{}.json", Digest::of(file.as_os_str().as_bytes()).hex())
}
