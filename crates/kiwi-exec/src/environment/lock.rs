//! The lock on an environment that is being built.

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use super::Progress;
use crate::error::ExecError;

/// Waits until nobody else builds. The lock ends with the last process that holds it, so a killed Kiwi holds up nobody,
/// and nobody starts before the launcher of a killed Kiwi has cleared up.
pub async fn lock(path: &Path, progress: Progress<'_>) -> Result<fs::File, ExecError> {
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
