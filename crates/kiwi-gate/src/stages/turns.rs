//! One call at a time, for tools that say so: by a file lock, so that it holds between processes as well.

use kiwi_model::{Fault, ToolId};
use kiwi_space::Spaces;
use std::fs::TryLockError;
use std::path::PathBuf;
use std::time::Duration;

use crate::admission::denied_by;
use crate::request::Cancel;

const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// Hands out turns.
pub(crate) struct Turns {
    folder: Option<PathBuf>,
}

/// A turn; it ends when this is dropped, and with the process at the latest.
pub(crate) struct Turn {
    _file: fs_err::File,
}

impl Turns {
    pub fn new(spaces: &Spaces) -> Self {
        Self { folder: spaces.cache_dir().ok().map(|cache| cache.join("turns")) }
    }

    /// Waits until nobody else is calling this tool.
    pub async fn take(&self, tool: &ToolId, cancel: &Cancel) -> Result<Turn, Fault> {
        let file = self.open(tool).map_err(|error| unavailable(tool, &error))?;
        let mut pause = SHORTEST_PAUSE;
        loop {
            match file.file().try_lock() {
                Ok(()) => return Ok(Turn { _file: file }),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(unavailable(tool, &error)),
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = cancel.fired() => {
                    return Err(denied_by("turn", format!("the call of `{tool}` was cancelled while it waited for another one")));
                }
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn open(&self, tool: &ToolId) -> std::io::Result<fs_err::File> {
        let folder = self.folder.as_ref().ok_or_else(|| std::io::Error::other("there is no space for it"))?;
        fs_err::create_dir_all(folder)?;
        fs_err::OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(folder.join(format!("{tool}.lock")))
    }
}

fn unavailable(tool: &ToolId, error: &std::io::Error) -> Fault {
    denied_by("turn", format!("`{tool}` runs one call at a time, and its turn cannot be taken: {error}"))
        .with_hint("make `.ai/cache` writable")
}
