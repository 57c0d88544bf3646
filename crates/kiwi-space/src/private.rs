//! Files that only their owner reads.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::durable;
use crate::error::SpaceError;

/// A file that only its owner can read; others' eyes on it make it useless.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, SpaceError> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(SpaceError::unreadable(path, error)),
    };
    let metadata = file.metadata().map_err(|error| SpaceError::unreadable(path, error))?;
    if metadata.mode() & 0o077 != 0 {
        return Err(SpaceError::Exposed { path: path.to_owned(), mode: metadata.mode() & 0o777 });
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|error| SpaceError::unreadable(path, error))?;
    Ok(Some(bytes))
}

/// Written beside it, for the owner alone from the first byte on, synced, renamed over it, the folder synced.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), SpaceError> {
    let folder = path.parent().unwrap_or(path);
    let unwritable = |error| SpaceError::unwritable(path, error);
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(folder).map_err(unwritable)?;
    file.write_all(bytes).map_err(unwritable)?;
    file.as_file().sync_all().map_err(unwritable)?;
    file.persist(path).map_err(|error| unwritable(error.error))?;
    durable::sync_folder(folder)
}

/// Removed, where it is there, and the folder synced.
pub(crate) fn remove(path: &Path) -> Result<(), SpaceError> {
    match std::fs::remove_file(path) {
        Ok(()) => durable::sync_folder(path.parent().unwrap_or(path)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(SpaceError::unwritable(path, error)),
    }
}
