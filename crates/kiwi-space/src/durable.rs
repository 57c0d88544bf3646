//! Writing so that a crash leaves the old or the new, never a half.

use std::fs::{File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::error::SpaceError;

/// Replaces a file: written beside it, synced, renamed over it, the folder synced.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), SpaceError> {
    write_as(path, bytes, 0o644)
}

/// The same, with these permissions.
pub(crate) fn write_as(path: &Path, bytes: &[u8], mode: u32) -> Result<(), SpaceError> {
    let folder = path.parent().unwrap_or(path);
    make_folder(folder)?;
    let unwritable = |error| SpaceError::unwritable(path, error);
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(folder).map_err(unwritable)?;
    file.write_all(bytes).map_err(unwritable)?;
    file.as_file().set_permissions(Permissions::from_mode(mode)).map_err(unwritable)?;
    file.as_file().sync_all().map_err(unwritable)?;
    file.persist(path).map_err(|error| SpaceError::unwritable(path, error.error))?;
    sync_folder(folder)
}

/// Replaces a file that belongs to another program, or makes it with these permissions: a crash leaves the old or the
/// new, a link stays a link, and a file that is there keeps its own permissions.
pub fn replace_file(path: &Path, bytes: &[u8], mode: u32) -> Result<(), SpaceError> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let own = target.metadata().ok().map(|metadata| metadata.permissions().mode() & 0o777);
    write_as(&target, bytes, own.unwrap_or(mode))
}

/// Makes a folder and those around it.
pub(crate) fn make_folder(folder: &Path) -> Result<(), SpaceError> {
    std::fs::create_dir_all(folder).map_err(|error| SpaceError::unwritable(folder, error))
}

/// Makes what was created, renamed or removed in a folder last.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), SpaceError> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| SpaceError::unwritable(folder, error))
}

/// Removes a file; one that is not there is removed already.
pub(crate) fn remove(path: &Path) -> Result<(), SpaceError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(SpaceError::unwritable(path, error))
        }
        _ => Ok(()),
    }
}
