//! The program that Kiwi carries along.

use std::fmt;
use std::io::Write as _;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::LazyLock;

use crate::error::ExecError;
use crate::memfd::sealed;

/// Its bytes, made with Kiwi itself; none for a processor that it was not written for.
const BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kiwi-launcher"));

/// It lies in memory that nobody can change any more, once for all launchers of this process.
struct Carried {
    path: PathBuf,
    _memory: OwnedFd,
}

impl fmt::Debug for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)
    }
}

/// Where it can be started, if the system lets programs run from memory.
pub fn path() -> Option<&'static PathBuf> {
    static CARRIED: LazyLock<Option<Carried>> = LazyLock::new(|| {
        let fill =
            |memory: &mut std::fs::File| memory.write_all(BYTES).map_err(ExecError::io("carry the launcher"));
        let memory = if BYTES.is_empty() { return None } else { sealed("kiwi", true, fill).ok()? };
        Some(Carried { path: format!("/proc/self/fd/{}", memory.as_raw_fd()).into(), _memory: memory })
    });
    CARRIED.as_ref().map(|carried| &carried.path)
}
