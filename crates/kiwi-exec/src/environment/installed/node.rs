//! The packages of a `node_modules` folder.

use kiwi_model::Pin;
use serde::Deserialize;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::super::contents::Contents;
use super::pin;

#[derive(Default, Deserialize)]
struct Package {
    name: Option<String>,
    version: Option<String>,
}

/// Every package folder, also those inside of packages, named by where it lies below `modules`.
pub fn list(modules: &Path) -> io::Result<Vec<Pin>> {
    let mut found = Vec::new();
    collect(modules, "", &mut found)?;
    Ok(found)
}

fn collect(modules: &Path, before: &str, found: &mut Vec<Pin>) -> io::Result<()> {
    for (name, folder) in folders(modules)? {
        if name.starts_with('@') {
            for (own, folder) in folders(&folder)? {
                package(&folder, before, &format!("{name}/{own}"), found)?;
            }
        } else {
            package(&folder, before, &name, found)?;
        }
    }
    Ok(())
}

fn package(folder: &Path, before: &str, name: &str, found: &mut Vec<Pin>) -> io::Result<()> {
    let own = fs::read(folder.join("package.json")).ok().and_then(|text| serde_json::from_slice(&text).ok());
    let own: Package = own.unwrap_or_default();
    let version = own.version.unwrap_or_else(|| "0.0.0".into());
    // Under a name that is not its own it is written as npm writes it.
    let version = match own.name {
        Some(real) if real != name => format!("npm:{real}@{version}"),
        _ => version,
    };
    let mut contents = Contents::default();
    add_files(folder, "", &mut contents)?;
    let place = format!("{before}{name}");
    found.push(pin(&place, &version, contents.digest())?);
    let nested = folder.join("node_modules");
    if nested.is_dir() { collect(&nested, &format!("{place}/node_modules/"), found) } else { Ok(()) }
}

/// All files below a folder, less the packages nested in it.
fn add_files(folder: &Path, before: &str, contents: &mut Contents) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = text(&entry)?;
        let path = format!("{before}{name}");
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            contents.add_link(path, &entry.path())?;
        } else if kind.is_file() {
            contents.add(path, &entry.path())?;
        } else if kind.is_dir() && path != "node_modules" {
            add_files(&entry.path(), &format!("{path}/"), contents)?;
        }
    }
    Ok(())
}

/// The folders in a folder, without `.bin` and the like.
fn folders(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = text(&entry)?;
        if !name.starts_with('.') && entry.file_type()?.is_dir() {
            found.push((name, entry.path()));
        }
    }
    Ok(found)
}

fn text(entry: &fs::DirEntry) -> io::Result<String> {
    entry.file_name().into_string().map_err(|_| io::Error::other("a file name is not UTF-8"))
}
