//! From files to a tool: what it says, who it is. The same for every space and form.

use kiwi_chain::{Form, Identity, Signature, Tool, changes};
use kiwi_model::manifest::Source;
use kiwi_model::yaml::{self, Document};
use kiwi_model::{Content, File, FileEntry, Integrity, Manifest, ManifestError, Space, ToolId, integrity_of};
use serde_json::Value;

use crate::error::SpaceError;
use crate::kind::Kind;
use crate::script;
use crate::take::KEEP_BYTES;

/// A tool's files and what its place says about it.
pub(crate) struct Raw<'a> {
    pub(crate) id: &'a ToolId,
    pub(crate) space: Space,
    pub(crate) kind: Kind,
    /// The manifest or script, as a person should see it.
    pub(crate) path: String,
    /// The same file, by its path inside the package.
    pub(crate) main: &'a str,
    /// The category its folder gives.
    pub(crate) category: Option<&'a str>,
    pub(crate) files: Vec<File>,
    /// What the manifest's YAML says, where somebody read these very bytes before.
    pub(crate) reading: Option<Document>,
}

/// What a tool says.
pub(crate) struct Meaning {
    pub(crate) document: Value,
    pub(crate) manifest: Manifest,
    pub(crate) warnings: Vec<String>,
}

impl Raw<'_> {
    pub(crate) fn entries(&self) -> Vec<FileEntry> {
        self.files.iter().map(|file| file.entry.clone()).collect()
    }

    /// Reads the manifest, out of the very bytes that were hashed.
    pub(crate) fn understand(&self) -> Result<Meaning, SpaceError> {
        let main = self.files.iter().find(|file| file.entry.path == self.main);
        let bytes = match main.map(|file| &file.content) {
            Some(Content::Bytes(bytes)) => bytes,
            Some(Content::OnDisk(_)) => {
                let limit = if self.kind.is_manifest() { yaml::MAX_BYTES as u64 } else { KEEP_BYTES };
                return Err(SpaceError::TooLarge { path: self.path.clone(), what: "bytes", limit });
            }
            None => return Err(SpaceError::unreadable(&self.path, std::io::ErrorKind::NotFound)),
        };
        let script = (!self.kind.is_manifest()).then(|| self.main.to_owned());
        let source = Source { file: self.path.clone(), id: self.id.clone(), script };
        let (document, manifest, warnings) = if self.kind.is_manifest() {
            match &self.reading {
                Some(document) => Manifest::read(document, &source)?,
                None => Manifest::read(&self.parse(bytes)?, &source)?,
            }
        } else {
            script::read(self.kind, bytes, &source)?
        };
        if self.space != Space::System && manifest.tool_type == "primitive" {
            return Err(SpaceError::ForeignPrimitive { path: self.path.clone() });
        }
        Ok(Meaning { document, manifest, warnings })
    }

    fn parse(&self, bytes: &[u8]) -> Result<Document, ManifestError> {
        yaml::parse(bytes)
            .map_err(|error| ManifestError::one(&self.path, error.message, error.hint, error.place))
    }

    /// The integrity these files would have, were their entries `entries`.
    pub(crate) fn integrity(
        &self,
        meaning: &Meaning,
        entries: &[FileEntry],
    ) -> Result<Integrity, SpaceError> {
        let Meaning { document, manifest, .. } = meaning;
        integrity_of(&manifest.tool_id, &manifest.version, document, entries)
            .map_err(|source| SpaceError::Unhashable { path: self.path.clone(), source })
    }

    /// The tool.
    pub(crate) fn finish(self, meaning: Meaning, identity: Identity) -> Result<Tool, SpaceError> {
        let integrity = self.integrity(&meaning, &self.entries())?;
        Ok(self.finish_as(integrity, meaning, identity))
    }

    /// The tool, whose integrity was computed already.
    pub(crate) fn finish_as(self, integrity: Integrity, meaning: Meaning, identity: Identity) -> Tool {
        let Meaning { document, manifest, mut warnings } = meaning;
        let folder = self.category.unwrap_or_default();
        let category = manifest.category.clone().unwrap_or_else(|| folder.to_owned());
        if self.category.is_some() && category.trim_matches('/') != folder {
            warnings.push(format!("{} says category `{category}` but lies in `{folder}`", self.path));
        }
        let form = if self.kind == Kind::Folder { Form::Folder } else { Form::OneFile };
        Tool {
            manifest,
            document,
            files: self.files,
            integrity,
            identity,
            signature: Signature::None,
            space: self.space,
            category,
            path: self.path,
            form,
            warnings,
        }
    }

    /// The error of a tool whose files were recorded: a changed file explains it better than what the change broke.
    pub(crate) fn judge(&self, recorded: &[FileEntry], name: &str, error: SpaceError) -> SpaceError {
        let changes = changes(recorded, &self.entries());
        if changes.is_empty() { error } else { SpaceError::Changed { tool: name.to_owned(), changes } }
    }
}
