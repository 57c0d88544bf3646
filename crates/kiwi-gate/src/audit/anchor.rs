//! The file outside of Kiwi's reach that every checkpoint is told to.

use std::io::{Error, ErrorKind, Result, Write as _};
use std::path::Path;

/// Finds out whether it can be written, before the effects that it is to vouch for. It is begun with the first checkpoint, not
/// before: one that is missing is missed until then.
pub(super) fn reach(anchor: Option<&Path>) -> std::result::Result<(), String> {
    let Some(anchor) = anchor else { return Ok(()) };
    match open(anchor, false) {
        Err(error) if error.kind() == ErrorKind::NotFound && has_folder(anchor) => Ok(()),
        opened => opened.map(drop).map_err(|error| unwritable(&error)),
    }
}

/// Tells it a checkpoint.
pub(super) fn tell(anchor: &Path, line: &str) -> std::result::Result<(), String> {
    let append = || -> Result<()> {
        let mut file = open(anchor, true)?;
        file.write_all(line.as_bytes())?;
        file.sync_all()
    };
    append().map_err(|error| unwritable(&error))
}

/// Opens it to append to it. A pipe of that name is not opened: that waits for whoever reads it.
fn open(anchor: &Path, create: bool) -> Result<fs_err::File> {
    if fs_err::metadata(anchor).is_ok_and(|there| !there.is_file()) {
        return Err(Error::other(format!("`{}` is no file", anchor.display())));
    }
    fs_err::OpenOptions::new().append(true).create(create).open(anchor)
}

fn has_folder(anchor: &Path) -> bool {
    anchor.parent().is_some_and(Path::is_dir)
}

fn unwritable(error: &Error) -> String {
    format!("the anchor cannot be written: {error}")
}
