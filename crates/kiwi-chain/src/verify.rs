//! Whether the bytes are what was recorded.

use kiwi_model::FileEntry;
use std::collections::BTreeMap;

use crate::catalog::{Identity, Signature, Tool};
use crate::error::{FileChange, Mismatch};

/// Compares a tool's computed integrity with the identity that applies to it, and with its signature.
pub fn verify(tool: &Tool) -> Result<(), Mismatch> {
    let (expected, recorded, record_missing) = match &tool.identity {
        Identity::Computed => return signed(tool),
        Identity::Recorded { integrity, .. } if *integrity == tool.integrity => return signed(tool),
        Identity::Recorded { integrity, files } => (*integrity, files.as_slice(), false),
        Identity::RecordMissing { noted } => (*noted, [].as_slice(), true),
    };
    let computed: Vec<FileEntry> = tool.files.iter().map(|file| file.entry.clone()).collect();
    let changes = if record_missing { Vec::new() } else { changes(recorded, &computed) };
    Err(Mismatch { tool: tool.name(), computed: tool.integrity, expected, changes, record_missing })
}

/// A signature that is there has to be one of this tool.
fn signed(tool: &Tool) -> Result<(), Mismatch> {
    let Signature::Wrong(file) = &tool.signature else { return Ok(()) };
    Err(Mismatch {
        tool: tool.name(),
        computed: tool.integrity,
        expected: tool.integrity,
        changes: vec![FileChange::Signature(file.clone())],
        record_missing: false,
    })
}

/// What differs between two lists of files, by path.
pub fn changes(before: &[FileEntry], after: &[FileEntry]) -> Vec<FileChange> {
    let before: BTreeMap<&str, &FileEntry> =
        before.iter().map(|entry| (entry.path.as_str(), entry)).collect();
    let after: BTreeMap<&str, &FileEntry> = after.iter().map(|entry| (entry.path.as_str(), entry)).collect();
    let mut changes: Vec<FileChange> = before
        .iter()
        .filter_map(|(path, was)| match after.get(path) {
            None => Some(FileChange::Removed((*path).to_owned())),
            Some(is) if is.sha256 != was.sha256 => Some(FileChange::Content {
                path: (*path).to_owned(),
                computed: is.sha256,
                expected: was.sha256,
            }),
            Some(is) if is.is_executable != was.is_executable => Some(FileChange::Mode((*path).to_owned())),
            Some(_) => None,
        })
        .collect();
    changes.extend(
        after
            .keys()
            .filter(|path| !before.contains_key(*path))
            .map(|path| FileChange::Added((*path).to_owned())),
    );
    changes
}
