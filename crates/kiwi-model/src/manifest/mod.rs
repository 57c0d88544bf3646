//! What a tool says about itself: every accepted spelling, read into one form.
//!
//! Two views of the same text are kept apart. The *document* is what was written, with keys under `manifest:` hoisted,
//! and is what gets hashed. The [`Manifest`] is what it means: aliases resolved, executor, entrypoint and requirements
//! filled in; schemas, merging and launching look at this one only.

mod advice;
mod fields;
mod parameters;
mod read;

pub use fields::{ChildConstraint, ChildSchema, ManifestFile, Validation, manifest_schema};
pub use parameters::ParameterSpec;
pub use read::{Source, Warning, is_timeout};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

use crate::yaml::Place;
use crate::{ErrorKind, Explain, Permissions, Space, ToolId, Version, VersionReq};

/// How tightly a tool is held.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// As the user, environment inheritance allowed.
    Trusted,
    /// Scrubbed environment, limits, supervision, no new privileges.
    #[default]
    Standard,
    /// Only declared paths and hosts can be reached, enforced by the kernel.
    Sandboxed,
    /// The same without any network.
    Restricted,
}

impl Isolation {
    /// The spelling used in files, flags and output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Standard => "standard",
            Self::Sandboxed => "sandboxed",
            Self::Restricted => "restricted",
        }
    }
}

impl std::fmt::Display for Isolation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::str::FromStr for Isolation {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Trusted, Self::Standard, Self::Sandboxed, Self::Restricted]
            .into_iter()
            .find(|level| level.as_str() == text)
            .ok_or_else(|| "expected trusted, standard, sandboxed or restricted".to_owned())
    }
}

/// The tool that runs a tool, and which versions of it will do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executor {
    /// Which tool.
    pub id: ToolId,
    /// Which versions of it.
    pub requirement: Option<VersionReq>,
}

/// What a tool means. Built by [`Manifest::read`].
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "a manifest says yes or no to several things")]
pub struct Manifest {
    /// Which tool.
    pub tool_id: ToolId,
    /// Which version.
    pub version: Version,
    /// `primitive`, `runtime`, `script`, `api`, …; aliases resolved.
    pub tool_type: String,
    /// What runs it; `None` only for a primitive.
    pub executor: Option<Executor>,
    /// The category it declares.
    pub category: Option<String>,
    /// A title for people.
    pub title: Option<String>,
    /// One line about it.
    pub description: Option<String>,
    /// Whether a call changes something.
    pub mutates_state: bool,
    /// Whether two calls may not happen at once.
    pub exclusive: bool,
    /// The file or command the runtime starts.
    pub entrypoint: Option<String>,
    /// Language packages.
    pub requires: Vec<String>,
    /// Whether language packages may be built from source, which runs their code.
    pub allow_source_builds: bool,
    /// Commands that must be on the path.
    pub requires_commands: Vec<String>,
    /// Environment variables that must be set; they are passed on.
    pub requires_env: Vec<String>,
    /// Secrets of the credential store that are passed on, by name.
    pub requires_secret: Vec<String>,
    /// A scope that some stored token must have; that token is passed on.
    pub required_scope: Option<String>,
    /// Shared modules of `tools/lib/` that are hashed into its files.
    pub lib_imports: Vec<String>,
    /// JSON Schema of its parameters.
    pub parameters: Option<Value>,
    /// Kinds of input it takes from its child.
    pub inputs: Option<Vec<String>>,
    /// Kinds of output it gives its parent.
    pub outputs: Option<Vec<String>>,
    /// What is merged down the chain.
    pub config: Map<String, Value>,
    /// JSON Schema of the merged configuration; primitives have one.
    pub config_schema: Option<Value>,
    /// What children it accepts.
    pub child_schemas: Option<Vec<ChildSchema>>,
    /// Which versions of which children it accepts.
    pub child_constraints: BTreeMap<String, ChildConstraint>,
    /// What it needs to touch.
    pub permissions: Permissions,
    /// How tightly it wants to be held.
    pub isolation: Option<Isolation>,
    /// Whether the entrypoint of its children must be a file of their package.
    pub entrypoint_is_file: bool,
    /// A file of this runtime that is started with the child's entrypoint as its first argument.
    pub runner: Option<String>,
    /// Search words.
    pub tags: Vec<String>,
    /// The document as `match` and child schemas see it: spellings unified, gaps filled.
    pub normalised: Value,
}

impl Manifest {
    /// The element that a parent's `match` and schema judge.
    pub fn element(&self, space: Space, category: &str) -> Value {
        serde_json::json!({
            "tool_id": self.tool_id,
            "version": self.version,
            "tool_type": self.tool_type,
            "category": category,
            "space": space,
            "executor": self.executor.as_ref().map(|executor| &executor.id),
            "manifest": self.normalised,
        })
    }
}

/// One thing wrong with a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
    /// Where.
    pub place: Place,
}

/// A manifest that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestError {
    /// Which file.
    pub file: String,
    /// Everything that is wrong with it; never empty.
    pub problems: Vec<Problem>,
}

impl ManifestError {
    /// An error with one problem.
    pub fn one(
        file: impl Into<String>,
        message: impl Into<String>,
        hint: Option<String>,
        place: Place,
    ) -> Self {
        Self { file: file.into(), problems: vec![Problem { message: message.into(), hint, place }] }
    }
}

impl std::error::Error for ManifestError {}

impl std::fmt::Display for ManifestError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            let separator = if i > 0 { "; " } else { "" };
            write!(
                f,
                "{separator}{}:{}:{}: {}",
                self.file, problem.place.line, problem.place.column, problem.message
            )?;
        }
        Ok(())
    }
}

impl Explain for ManifestError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::InvalidManifest
    }
    fn hint(&self) -> Option<String> {
        self.problems.iter().find_map(|problem| problem.hint.clone())
    }
    fn details(&self) -> Value {
        let problems: Vec<Value> = self
            .problems
            .iter()
            .map(|p| serde_json::json!({"message": p.message, "hint": p.hint, "line": p.place.line, "column": p.place.column}))
            .collect();
        serde_json::json!({"file": self.file, "problems": problems})
    }
}
