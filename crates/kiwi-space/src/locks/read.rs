//! Reading one lockfile: what is there must be what its name promises, or it is a problem, never nothing.

use jiff::Timestamp;
use kiwi_model::Digest;
use kiwi_model::lockfile::{LockName, Lockfile, LockfileError};
use std::io::{self, Read as _};

use super::place::{inside, path_of, split};
use super::{LockProblem, time};
use crate::error::{SpaceError, plain};
use crate::root::Root;

/// A chain of a hundred links with thousands of files stays below this.
pub(super) const MAX_BYTES: u64 = 4 << 20;

/// A lockfile as it was read.
pub(super) struct ReadLock {
    pub(super) lock: Lockfile,
    pub(super) digest: Digest,
    pub(super) modified: Timestamp,
}

/// A lockfile with its right name; `None` where there is none.
pub(super) type Settled = Result<Option<(ReadLock, LockName)>, LockProblem>;

/// Reads the lockfile with a key; `None` where there is none. `name` is what the key says.
pub(super) fn read(root: &Root, key: &str, name: &LockName) -> Result<Option<ReadLock>, LockProblem> {
    let Some(found) = read_any(root, key)? else { return Ok(None) };
    agree(&found.lock, split(key).0, name)?;
    Ok(Some(found))
}

/// Reads the lockfile with a key, and what its name means: only the content tells an alternative of a prerelease.
pub(super) fn read_settled(root: &Root, key: &str, name: &LockName) -> Settled {
    let Some(found) = read_any(root, key)? else { return Ok(None) };
    let name = name.clone().settle(&found.lock.chain_hash);
    agree(&found.lock, split(key).0, &name)?;
    Ok(Some((found, name)))
}

fn read_any(root: &Root, key: &str) -> Result<Option<ReadLock>, LockProblem> {
    let opened = match root.open_file(&inside(&path_of(key))) {
        Ok(opened) => opened,
        Err(error) if error.is_absent() || is_too_long(&error) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut bytes = Vec::new();
    opened
        .file
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| LockProblem::Unreachable(format!("cannot be read: {}", plain(&error))))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(LockProblem::Unreachable(format!("has more than {MAX_BYTES} bytes")));
    }
    let text =
        std::str::from_utf8(&bytes).map_err(|_| LockfileError::Inconsistent("is not UTF-8".to_owned()))?;
    let lock = Lockfile::parse(text)?;
    Ok(Some(ReadLock { lock, digest: Digest::of(&bytes), modified: time::modified(&opened.stat) }))
}

/// A name that no file can have belongs to no file.
fn is_too_long(error: &SpaceError) -> bool {
    matches!(error, SpaceError::Unreadable { source, .. } if source.kind() == io::ErrorKind::InvalidFilename)
}

fn agree(lock: &Lockfile, category: &str, name: &LockName) -> Result<(), LockProblem> {
    let root = &lock.root;
    let says_hash = name.alternative.as_ref();
    let agrees = root.tool_id == name.tool_id
        && root.version == name.version
        && root.category == category
        && says_hash.is_none_or(|hash| *hash == lock.chain_hash);
    if agrees {
        return Ok(());
    }
    let tell = |tool: String, category: &str, hash: Option<&String>| {
        let chain = hash.map(|hash| format!(", chain {hash}")).unwrap_or_default();
        let category =
            if category.is_empty() { "no category".into() } else { format!("category `{category}`") };
        format!("`{tool}` in {category}{chain}")
    };
    Err(LockProblem::Misplaced {
        holds: tell(
            format!("{}@{}", root.tool_id, root.version),
            &root.category,
            says_hash.map(|_| &lock.chain_hash),
        ),
        says: tell(format!("{}@{}", name.tool_id, name.version), category, says_hash),
    })
}
