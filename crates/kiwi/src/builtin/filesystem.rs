//! The helpers behind `filesystem.*`. The kernel confines each call to its path; what they refuse here is for people.

use base64::Engine as _;
use serde_json::{Map, Value, json};
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Component, Path, PathBuf};

use super::listing;

/// What one call gives back of a file at most.
const MOST_BYTES: usize = 1 << 20;

/// Whether a helper of this name is here.
pub(super) fn is_one(name: &str) -> bool {
    name.starts_with("filesystem.")
}

/// Runs one.
pub(super) fn run(name: &str, params: &Map<String, Value>) -> Result<Value, String> {
    let given = params.get("path").and_then(Value::as_str).unwrap_or_default();
    let path = plain(given).map_err(|error| told(given, &error))?;
    let content = params.get("content").and_then(Value::as_str).unwrap_or_default();
    let number =
        |name: &str| params.get(name).and_then(Value::as_u64).and_then(|it| usize::try_from(it).ok());
    let is_recursive = params.get("recursive") == Some(&Value::Bool(true));
    let done = match name {
        "filesystem.read" => read(&path, number("offset"), number("limit")),
        "filesystem.write" => write(&behind(&path), content),
        "filesystem.create" => create(&behind(&path), content),
        "filesystem.delete" => delete(&path, is_recursive),
        "filesystem.list" => {
            let glob = params.get("glob").and_then(Value::as_str);
            return listing::list(&path, number("depth").unwrap_or(1), glob).map(|found| shown(given, found));
        }
        _ => return Err("kiwi has no such helper".into()),
    };
    done.map(|result| shown(given, result)).map_err(|error| told(given, &error))
}

/// A result under the name that was given.
fn shown(given: &str, mut result: Value) -> Value {
    if let Some(map) = result.as_object_mut() {
        map.insert("path".into(), given.into());
    }
    result
}

fn told(given: &str, error: &io::Error) -> String {
    let why = match error.kind() {
        ErrorKind::NotFound => "there is no such file or folder".to_owned(),
        ErrorKind::AlreadyExists => "it is there already; `filesystem.write` replaces it".to_owned(),
        ErrorKind::DirectoryNotEmpty => {
            "the folder is not empty; `recursive=true` removes all of it".to_owned()
        }
        ErrorKind::IsADirectory => "it is a folder".to_owned(),
        ErrorKind::PermissionDenied => "it may not be touched".to_owned(),
        _ => error.to_string(),
    };
    format!("`{given}`: {why}")
}

/// Absolute, and without `.` and `..` by the spelling: so it was judged, and so it is found inside.
fn plain(path: &str) -> io::Result<PathBuf> {
    let mut out = PathBuf::from("/");
    for part in std::path::absolute(path)?.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::ParentDir => {
                out.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    Ok(out)
}

/// Where a link leads: a file is written there, not put in the link's place.
fn behind(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..40 {
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("/")).join(target),
            Err(_) => break,
        }
    }
    path
}

fn read(path: &Path, offset: Option<usize>, limit: Option<usize>) -> io::Result<Value> {
    let bytes = fs::read(path)?;
    let (from, count) = (offset.unwrap_or(1).max(1) - 1, limit.unwrap_or(usize::MAX));
    let all = bytes.len();
    match String::from_utf8(bytes) {
        Ok(text) => {
            let mut content = String::new();
            let mut lines = text.split_inclusive('\n').skip(from);
            let mut is_truncated = false;
            for line in lines.by_ref().take(count) {
                if content.len() + line.len() > MOST_BYTES {
                    is_truncated = true;
                    break;
                }
                content.push_str(line);
            }
            is_truncated |= lines.next().is_some();
            Ok(json!({"content": content, "bytes": all, "truncated": is_truncated, "encoding": "utf-8"}))
        }
        Err(binary) => {
            let bytes = binary.into_bytes();
            let rest = bytes.get(from.min(all)..).unwrap_or_default();
            let part = rest.get(..rest.len().min(count).min(MOST_BYTES)).unwrap_or_default();
            let content = base64::engine::general_purpose::STANDARD.encode(part);
            let is_truncated = part.len() < rest.len();
            Ok(json!({"content": content, "bytes": all, "truncated": is_truncated, "encoding": "base64"}))
        }
    }
}

/// Replaces a file in one step: whoever reads it sees the old text or the new one.
fn write(path: &Path, content: &str) -> io::Result<Value> {
    let old = fs::symlink_metadata(path).ok();
    if old.as_ref().is_some_and(fs::Metadata::is_dir) {
        return Err(ErrorKind::IsADirectory.into());
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let part = folder.join(format!(".{name}.{}.part", std::process::id()));
    let written = fill(&part, content)
        .and_then(|()| old.as_ref().map_or(Ok(()), |old| fs::set_permissions(&part, old.permissions())))
        .and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written?;
    Ok(json!({"bytes": content.len(), "created": old.is_none()}))
}

fn create(path: &Path, content: &str) -> io::Result<Value> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
    fill(path, content)?;
    Ok(json!({"bytes": content.len()}))
}

fn fill(path: &Path, content: &str) -> io::Result<()> {
    // For writing alone: who may make a file need not be allowed to read it.
    let mut file = fs::OpenOptions::new().write(true).create_new(true).open(path)?;
    let written = file.write_all(content.as_bytes()).and_then(|()| file.sync_all());
    if written.is_err() {
        let _ = fs::remove_file(path);
    }
    written
}

fn delete(path: &Path, is_recursive: bool) -> io::Result<Value> {
    let found = fs::symlink_metadata(path)?;
    if found.is_symlink() {
        return Err(io::Error::other("it is a symbolic link; name what it leads to"));
    }
    match (found.is_dir(), is_recursive) {
        (false, _) => fs::remove_file(path)?,
        (true, false) => fs::remove_dir(path)?,
        (true, true) => fs::remove_dir_all(path)?,
    }
    Ok(json!({"deleted": true}))
}
