//! The file that says an environment is complete, and what is in it.

use kiwi_model::{Language, Pin};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use super::{Environment, Wish, node, python};
use crate::error::ExecError;

pub const NAME: &str = ".complete";

#[derive(Serialize, Deserialize)]
struct Marker {
    interpreter: String,
    installed: Vec<Pin>,
}

/// The environment in a folder, if it was completed and its interpreter is still there.
pub fn read(folder: &Path, wish: &Wish) -> Option<Environment> {
    let marker: Marker = serde_json::from_slice(&fs::read(folder.join(NAME)).ok()?).ok()?;
    let environment = environment(folder, wish, marker);
    environment.program.exists().then_some(environment)
}

/// The version of the interpreter and what is installed, if the environment was completed.
pub fn peek(folder: &Path) -> Option<(String, Vec<Pin>)> {
    let marker: Marker = serde_json::from_slice(&fs::read(folder.join(NAME)).ok()?).ok()?;
    Some((marker.interpreter, marker.installed))
}

/// Declares an environment complete.
pub fn write(
    folder: &Path,
    wish: &Wish,
    interpreter: String,
    installed: Vec<Pin>,
) -> Result<Environment, ExecError> {
    let marker = Marker { interpreter, installed };
    put(folder, &marker).map_err(ExecError::io("complete the prepared environment"))?;
    Ok(environment(folder, wish, marker))
}

fn environment(folder: &Path, wish: &Wish, marker: Marker) -> Environment {
    let (program, modules) = match wish.language {
        Language::Python => (python::program_of(folder), None),
        Language::Node => (wish.interpreter.clone(), Some(node::modules_of(folder))),
    };
    Environment { program, modules, interpreter: marker.interpreter, installed: marker.installed }
}

fn put(folder: &Path, marker: &Marker) -> io::Result<()> {
    // After a crash of the machine the marker must not be there without what it stands for.
    rustix::fs::syncfs(fs::File::open(folder)?)?;
    let unfinished = folder.join(".complete.new");
    let mut file = fs::File::create(&unfinished)?;
    file.write_all(&serde_json::to_vec(marker)?)?;
    file.sync_all()?;
    fs::rename(unfinished, folder.join(NAME))
}
