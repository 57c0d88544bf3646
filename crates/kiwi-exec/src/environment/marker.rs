//! The file that says an environment is complete, and what is in it.

use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::Environment;
use crate::error::ExecError;

const NAME: &str = ".complete";

#[derive(Serialize, Deserialize)]
struct Marker {
    installed: Vec<String>,
}

/// The environment in a folder, if it was completed and its interpreter is still there.
pub fn read(folder: &Path) -> Option<Environment> {
    let marker: Marker = serde_json::from_slice(&fs::read(folder.join(NAME)).ok()?).ok()?;
    let python = python_of(folder);
    python.exists().then_some(Environment { python, installed: marker.installed })
}

/// Declares an environment complete.
pub fn write(folder: &Path) -> Result<Environment, ExecError> {
    let installed = installed(folder).map_err(ExecError::io("list what was installed"))?;
    let environment = Environment { python: python_of(folder), installed };
    put(folder, &environment.installed).map_err(ExecError::io("complete the prepared environment"))?;
    Ok(environment)
}

/// The interpreter of an environment.
pub fn python_of(folder: &Path) -> PathBuf {
    folder.join("bin/python")
}

fn put(folder: &Path, installed: &[String]) -> io::Result<()> {
    // After a crash of the machine the marker must not be there without what it stands for.
    rustix::fs::syncfs(fs::File::open(folder)?)?;
    let unfinished = folder.join(".complete.new");
    let mut file = fs::File::create(&unfinished)?;
    file.write_all(&serde_json::to_vec(&Marker { installed: installed.to_vec() })?)?;
    file.sync_all()?;
    fs::rename(unfinished, folder.join(NAME))
}

/// What the packages say about themselves, read without running anything.
fn installed(folder: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for version in fs::read_dir(folder.join("lib"))? {
        let packages = version?.path().join("site-packages");
        for entry in fs::read_dir(packages).into_iter().flatten() {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "dist-info")
                && let Some(package) = name_and_version(&fs::read(path.join("METADATA"))?)
            {
                found.push(package);
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

fn name_and_version(metadata: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(metadata);
    let field = |name: &str| {
        text.lines().take_while(|line| !line.is_empty()).find_map(|line| line.strip_prefix(name))
    };
    Some(format!("{}=={}", field("Name: ")?.trim(), field("Version: ")?.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_read_up_to_the_description() {
        let metadata = b"Metadata-Version: 2.1\nName: Six\nVersion: 1.16.0\n\nVersion: 9\n";
        assert_eq!(name_and_version(metadata), Some("Six==1.16.0".into()));
        assert_eq!(name_and_version(b"Name: x\n\nVersion: 1"), None);
    }
}
