//! Names for what is kept: by everything that decides what it holds.

use kiwi_model::{Digest, Language};
use serde_json::{Value, json};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Wanted, Wish};
use crate::error::ExecError;

/// The name of a wish's environment: equal for equal interpreters and packages, in whatever order.
pub fn of_wish(wish: &Wish) -> Result<String, ExecError> {
    let (path, file) = found(&wish.interpreter).map_err(not_found(&wish.interpreter))?;
    let mut packages = wish.packages.texts();
    packages.sort_unstable();
    packages.dedup();
    Ok(name(&json!({
        "interpreter": path.to_string_lossy(),
        "size": file.size(),
        "modified": [file.mtime(), file.mtime_nsec()],
        "packages": packages,
        "pinned": matches!(wish.packages, Wanted::Pinned(_)),
        "allow_source_builds": wish.allow_source_builds,
    })))
}

/// The name of one interpreter file. One that was updated in place is another interpreter.
pub fn of_interpreter(language: Language, path: &Path) -> Result<String, ExecError> {
    let found = found(path).map_err(not_found(path))?;
    Ok(name(&json!({"language": language.as_str(), "interpreter": of_file(&found)})))
}

/// What tells a program from what may lie there another time, where it can be found.
pub fn of_program(path: &Path) -> Option<Value> {
    found(path).ok().as_ref().map(of_file)
}

fn of_file((path, file): &(PathBuf, Metadata)) -> Value {
    json!({
        "path": path.to_string_lossy(),
        "size": file.size(),
        "modified": [file.mtime(), file.mtime_nsec()],
        "inode": file.ino(),
    })
}

fn found(path: &Path) -> io::Result<(PathBuf, Metadata)> {
    fs::canonicalize(path).and_then(|path| fs::metadata(&path).map(|file| (path, file)))
}

fn not_found(path: &Path) -> impl FnOnce(io::Error) -> ExecError + use<> {
    ExecError::io(format!("find the interpreter `{}`", path.display()))
}

/// A name for what these facts are about.
pub fn name(identity: &Value) -> String {
    Digest::of(identity.to_string().as_bytes()).hex().chars().take(32).collect()
}
