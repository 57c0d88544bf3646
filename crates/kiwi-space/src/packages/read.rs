//! Reading a package that lies nowhere yet.

use kiwi_chain::{Identity, Tool};
use kiwi_model::{Content, Digest, File, FileEntry, Space, ToolId, Version};

use super::NewFile;
use crate::assemble::Raw;
use crate::error::SpaceError;
use crate::loader::{brings_modules, has_version, main_of_package};

/// The tool that these files are as a package: what they say, and what they hash to. Nothing is written.
pub fn package_of(id: &ToolId, version: &Version, files: &[NewFile<'_>]) -> Result<Tool, SpaceError> {
    let file = |file: &NewFile<'_>| File {
        entry: FileEntry {
            path: file.path.to_owned(),
            sha256: Digest::of(file.bytes),
            is_executable: file.is_executable,
        },
        content: Content::Bytes(file.bytes.into()),
    };
    let mut files: Vec<File> = files.iter().map(file).collect();
    files.sort_unstable_by(|a, b| a.entry.path.cmp(&b.entry.path));
    let (kind, main) = main_of_package(id, &files);
    let path = format!("{id}@{version}/{main}");
    let raw = Raw {
        id,
        // Wherever it is installed, it is no tool of the system.
        space: Space::User,
        kind,
        path,
        main: &main,
        category: None,
        files,
        reading: None,
    };
    let meaning = has_version(&raw, raw.understand()?, version)?;
    brings_modules(&raw.path, &meaning.manifest.lib_imports, &raw.entries(), || "lib".into())?;
    raw.finish(meaning, Identity::Computed)
}
