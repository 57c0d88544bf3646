//! Versions as they are read from the tables.

use kiwi_model::{Digest, ToolId, Version};

use super::database::Row;
use crate::error::RegistryError;
use crate::protocol::{FileInfo, Release, Signature};

/// The columns of a version `v`, in the order in which [`read`] takes them. Its files are lines of one text: no path holds a
/// line's end, and both engines can join lines.
macro_rules! release {
    () => {
        "v.tool_id, v.version, v.tool_type, v.executor, v.manifest, v.integrity, v.signature_key, v.signature, \
         v.published_at, v.publisher, v.yanked, (SELECT string_agg(f.sha256 || ' ' || f.is_executable || ' ' || f.size || \
         ' ' || f.path, '\n') FROM tool_version_files f WHERE f.version_number = v.number)"
    };
}
pub(super) use release;

/// Reads a version.
pub(super) fn read(row: &mut Row) -> Result<Release, RegistryError> {
    let (tool_id, version) = (tool_id(&row.text()?)?, version(&row.text()?)?);
    let (tool_type, executor) = (row.text()?, row.optional_text()?);
    let manifest = serde_json::from_str(&row.text()?).map_err(RegistryError::broken)?;
    let integrity = digest(&row.text()?)?;
    let signature = row.optional_text()?.zip(row.optional_text()?);
    let (published_at, publisher, yanked) = (row.text()?, row.text()?, row.optional_text()?);
    let mut files =
        row.optional_text()?.unwrap_or_default().lines().map(file).collect::<Result<Vec<_>, _>>()?;
    files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    Ok(Release {
        tool_id,
        version,
        tool_type,
        executor,
        manifest,
        integrity,
        files,
        signature: signature.map(|(key, signature)| Signature { key, signature }),
        published_at,
        publisher,
        yanked,
    })
}

fn file(line: &str) -> Result<FileInfo, RegistryError> {
    let mut parts = line.splitn(4, ' ');
    let mut next = || parts.next().ok_or_else(|| RegistryError::broken("a file without all its columns"));
    let (sha256, is_executable, size, path) = (next()?, next()?, next()?, next()?);
    Ok(FileInfo {
        path: path.to_owned(),
        sha256: digest(sha256)?,
        is_executable: is_executable == "1",
        size: size.parse().map_err(RegistryError::broken)?,
    })
}

pub(super) fn tool_id(text: &str) -> Result<ToolId, RegistryError> {
    ToolId::parse(text).map_err(RegistryError::broken)
}

pub(super) fn version(text: &str) -> Result<Version, RegistryError> {
    Version::parse(text).map_err(RegistryError::broken)
}

pub(super) fn digest(text: &str) -> Result<Digest, RegistryError> {
    Digest::parse(text).map_err(RegistryError::broken)
}
