//! What resolution needs to know about tools, however they are kept.

use kiwi_model::{Fault, File, FileEntry, Integrity, Link, Manifest, Space, ToolId, Version};
use serde_json::Value;
use std::sync::Arc;

/// Where tools come from. Implemented over folders by `kiwi-space`, over maps by tests.
pub trait Catalog {
    /// Every version of `id` in one space, in any order. Empty where there is none.
    fn candidates(&self, id: &ToolId, space: Space) -> Result<Vec<Candidate>, Fault>;

    /// Reads a candidate whole: manifest, files, identity.
    fn load(&self, candidate: &Candidate) -> Result<Arc<Tool>, Fault>;

    /// Every id there is, for "did you mean"; asked only when something is missing.
    fn ids(&self) -> Vec<ToolId>;
}

/// One version of a tool that could be chosen.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Which tool.
    pub id: ToolId,
    /// Which version.
    pub version: Version,
    /// Where.
    pub space: Space,
    /// Opaque to resolution: how the catalogue finds it again.
    pub handle: String,
    /// The tool, where finding its version meant reading it.
    pub loaded: Option<Arc<Tool>>,
}

/// How a tool's files lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// One file.
    OneFile,
    /// A folder with a manifest.
    Folder,
    /// It has none: a server offers it.
    Upstream,
}

/// What the computed integrity must equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// A plain file or folder: the computed value is the identity.
    Computed,
    /// Something was written down when it was installed or built.
    Recorded {
        /// The integrity then.
        integrity: Integrity,
        /// The files then, so that the changed one can be named.
        files: Vec<FileEntry>,
    },
    /// A record was noted and is gone: never trusted.
    RecordMissing {
        /// The integrity that was noted.
        noted: Integrity,
    },
}

/// What lies beside a tool for its signature.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Signature {
    /// Nothing.
    #[default]
    None,
    /// A signature over its integrity, by this key.
    By(String),
    /// This file, which is no such signature.
    Wrong(String),
}

/// A tool as the catalogue read it.
#[derive(Debug, Clone)]
pub struct Tool {
    /// What it means.
    pub manifest: Manifest,
    /// What is hashed of the manifest.
    pub document: Value,
    /// Its files and their bytes.
    pub files: Vec<File>,
    /// Computed from the two above.
    pub integrity: Integrity,
    /// What it must equal.
    pub identity: Identity,
    /// Who vouches for it.
    pub signature: Signature,
    /// Where it was found.
    pub space: Space,
    /// Declared category, else the folder path.
    pub category: String,
    /// The manifest or script file, as a person should see it.
    pub path: String,
    /// How its files lie.
    pub form: Form,
    /// Worth saying, not worth stopping.
    pub warnings: Vec<String>,
}

impl Tool {
    /// The link this tool makes in a chain.
    pub fn link(&self) -> Link {
        Link {
            tool_id: self.manifest.tool_id.clone(),
            version: self.manifest.version.clone(),
            space: self.space,
            integrity: self.integrity,
            executor: self.manifest.executor.as_ref().map(|executor| executor.id.clone()),
        }
    }

    /// `id@version`, as messages name a tool.
    pub fn name(&self) -> String {
        format!("{}@{}", self.manifest.tool_id, self.manifest.version)
    }

    /// The file of this tool at a path inside its package.
    pub fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.entry.path == path)
    }
}
