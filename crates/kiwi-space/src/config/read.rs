//! Reading configuration files. One that is not there says nothing; one that cannot be read refuses.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::file::ConfigFile;
use crate::error::SpaceError;
use crate::root::{Opened, Root};

const FILE: &str = "config/kiwi.toml";
const MAX_BYTES: u64 = 1 << 20;

/// The keys of [`ConfigFile`]; a test holds them against the generated schema.
pub(super) const KNOWN: [(&str, &[&str]); 11] = [
    ("audit", &["anchor"]),
    ("credentials", &["keyring"]),
    ("limits", &["output", "timeout"]),
    ("lockfiles", &["mode"]),
    ("python", &["interpreter"]),
    ("registry", &["url"]),
    ("rules", &["default", "required"]),
    ("sandbox", &["backend"]),
    ("search", &["dimensions", "embedder", "key_env", "model", "name", "url", "usage"]),
    ("trust", &["require_signature"]),
    ("validation", &["mode"]),
];
/// Sections that decide what a caller may do. What is misspelt there must not be passed over: they are read strictly.
pub(super) const STRICT: [&str; 6] = ["approvals", "budget", "loops", "profiles", "rates", "transports"];

pub(super) type Open = fn(&Root, &str, &Path) -> Result<Option<std::fs::File>, SpaceError>;

/// A file of a space that must lie in it.
pub(crate) fn open_inside(
    root: &Root,
    relative: &str,
    _path: &Path,
) -> Result<Option<std::fs::File>, SpaceError> {
    match root.open_file(relative) {
        Ok(Opened { file, .. }) => Ok(Some(file)),
        Err(error) if error.is_absent() => Ok(None),
        Err(error) => Err(error),
    }
}

/// A file of a space that may be linked from elsewhere.
pub(crate) fn open_anywhere(
    _root: &Root,
    _relative: &str,
    path: &Path,
) -> Result<Option<std::fs::File>, SpaceError> {
    let target = match path.canonicalize() {
        Ok(target) => target,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && path.symlink_metadata().is_err() => {
            return Ok(None);
        }
        Err(error) => return Err(SpaceError::unreadable(path, error)),
    };
    let (Some(folder), Some(name)) = (target.parent(), target.file_name().and_then(|name| name.to_str()))
    else {
        return Ok(None);
    };
    let root =
        Root::open(folder)?.ok_or_else(|| SpaceError::unreadable(path, std::io::ErrorKind::NotFound))?;
    root.open_file(name).map(|opened| Some(opened.file))
}

pub(super) fn read(
    ai: Option<&Path>,
    open: Open,
    warnings: &mut Vec<String>,
) -> Result<ConfigFile, SpaceError> {
    let Some(ai) = ai else { return Ok(ConfigFile::default()) };
    let Some(root) = Root::open(ai)? else { return Ok(ConfigFile::default()) };
    let path = ai.join(FILE);
    let Some(file) = open(&root, FILE, &path)? else { return Ok(ConfigFile::default()) };
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| SpaceError::unreadable(&path, error))?;
    parse(&bytes, &path, warnings)
}

pub(super) fn parse(bytes: &[u8], path: &Path, warnings: &mut Vec<String>) -> Result<ConfigFile, SpaceError> {
    let fail = |offset: usize, message: String| {
        let (line, column) = place(bytes, offset);
        SpaceError::Config { file: PathBuf::from(path), line, column, message }
    };
    if bytes.len() as u64 > MAX_BYTES {
        return Err(fail(0, format!("the file has more than {MAX_BYTES} bytes")));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| fail(error.valid_up_to(), "the file is not UTF-8 text".to_owned()))?;
    let explain = |error: &toml::de::Error| {
        let message = error.message().trim().replace("unknown variant", "unknown value").replace('\n', ", ");
        fail(error.span().map_or(0, |span| span.start), message)
    };
    let table: toml::Table = toml::from_str(text).map_err(|error| explain(&error))?;
    let file: ConfigFile = toml::from_str(text).map_err(|error| explain(&error))?;
    for (section, value) in &table {
        let unknown: Vec<String> = match KNOWN.iter().find(|(known, _)| known == section) {
            None if STRICT.contains(&section.as_str()) => Vec::new(),
            None => vec![section.clone()],
            Some((_, keys)) => {
                let given = value.as_table().into_iter().flatten().map(|(key, _)| key);
                given
                    .filter(|key| !keys.contains(&key.as_str()))
                    .map(|key| format!("{section}.{key}"))
                    .collect()
            }
        };
        warnings.extend(unknown.into_iter().map(|key| {
            format!("{}: `{}` is not known and means nothing", path.display(), key.escape_debug())
        }));
    }
    Ok(file)
}

/// Line and column of a byte, both from 1, columns in characters.
fn place(bytes: &[u8], offset: usize) -> (usize, usize) {
    let before = bytes.get(..offset).unwrap_or(bytes);
    let line = before.split(|byte| *byte == b'\n').count();
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    (line, String::from_utf8_lossy(before.get(start..).unwrap_or_default()).chars().count() + 1)
}
