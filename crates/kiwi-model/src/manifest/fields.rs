//! The keys a manifest may have, as types. `kiwi schema manifest` prints the JSON Schema generated from them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

use super::Isolation;
use super::parameters::ParameterSpec;
use crate::Permissions;

/// A tool manifest as it may be written. Keys may also stand under `manifest:`; unknown keys are kept and hashed.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(title = "Kiwi tool manifest")]
pub struct ManifestFile {
    /// `[a-z][a-z0-9_]*` segments joined by dots; the name of the file or folder.
    pub tool_id: Option<String>,
    /// Semantic version.
    pub version: Option<String>,
    /// primitive, runtime, script, api, mcp, …; python, bash, node and docker mean script plus that runtime.
    pub tool_type: Option<String>,
    /// The tool that runs this one: an id, or a map with `id` and `version`, or document 004's form.
    pub executor: Option<Value>,
    /// Folder path below `tools/`.
    pub category: Option<String>,
    /// Free text name.
    pub title: Option<String>,
    /// One line about the tool.
    pub description: Option<String>,
    /// Whether a call changes something.
    pub mutates_state: Option<bool>,
    /// Whether only one call may run at a time.
    pub exclusive: Option<bool>,
    /// Whether repeating a call with the same key is harmless.
    pub idempotent: Option<bool>,
    /// Language packages, such as `pandas>=2.0`.
    pub requires: Option<Vec<String>>,
    /// The language of a script.
    pub language: Option<String>,
    /// The file the runtime starts.
    pub entrypoint: Option<String>,
    /// JSON Schema of the parameters, or a list of parameters.
    pub parameters: Option<ParameterSpec>,
    /// Kinds of input taken from the child.
    pub inputs: Option<Vec<String>>,
    /// Kinds of output given to the parent.
    pub outputs: Option<Vec<String>>,
    /// Merged down the chain, child over parent.
    pub config: Option<Map<String, Value>>,
    /// JSON Schema of the merged configuration (primitives).
    pub config_schema: Option<Value>,
    /// What children this tool accepts.
    pub validation: Option<Validation>,
    /// Version bounds per child.
    pub child_constraints: Option<BTreeMap<String, ChildConstraint>>,
    /// What the tool needs to touch.
    pub permissions: Option<Permissions>,
    /// How tightly the tool is held.
    pub isolation: Option<Isolation>,
    /// Commands that must be on the path.
    pub requires_commands: Option<Vec<String>>,
    /// Environment variables that must be set.
    pub requires_env: Option<Vec<String>>,
    /// Secrets that must be in the credential store.
    pub requires_secret: Option<Vec<String>>,
    /// A scope that a stored token must have.
    pub required_scope: Option<String>,
    /// Shared modules of `tools/lib/`.
    pub lib_imports: Option<Vec<String>>,
    /// Whether packages may be built from source.
    pub allow_source_builds: Option<bool>,
    /// Runtimes: whether a child's entrypoint must be a file of its package.
    pub entrypoint_is_file: Option<bool>,
    /// Runtimes: a file of this package that is started with the entrypoint as its argument.
    pub runner: Option<String>,
    /// Search words.
    pub tags: Option<Vec<String>>,
    /// Keys may also stand here, as in document 000.
    pub manifest: Option<Map<String, Value>>,
}

/// What children a tool accepts.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Validation {
    /// The first entry whose `match` fits judges the child.
    pub child_schemas: Option<Vec<ChildSchema>>,
}

/// One accepted kind of child.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChildSchema {
    /// Keys of the child element, dotted paths allowed, and the values they must have.
    #[serde(rename = "match", default)]
    pub criteria: Map<String, Value>,
    /// JSON Schema of the child element.
    pub schema: Value,
}

/// Inclusive version bounds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ChildConstraint {
    /// The lowest version accepted.
    pub min_version: Option<String>,
    /// The highest version accepted.
    pub max_version: Option<String>,
}

/// The keys of [`ManifestFile`]; a test holds them against the generated schema.
pub(super) const KNOWN_KEYS: &[&str] = &[
    "tool_id",
    "version",
    "tool_type",
    "executor",
    "category",
    "title",
    "description",
    "mutates_state",
    "exclusive",
    "idempotent",
    "requires",
    "language",
    "entrypoint",
    "parameters",
    "inputs",
    "outputs",
    "config",
    "config_schema",
    "validation",
    "child_constraints",
    "permissions",
    "isolation",
    "requires_commands",
    "requires_env",
    "requires_secret",
    "required_scope",
    "lib_imports",
    "allow_source_builds",
    "entrypoint_is_file",
    "runner",
    "tags",
    "manifest",
];

/// The JSON Schema of a manifest file, generated from the types.
pub fn manifest_schema() -> Value {
    schemars::schema_for!(ManifestFile).to_value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_keys_are_the_keys_of_the_schema() {
        let schema = manifest_schema();
        let mut keys: Vec<&str> =
            schema["properties"].as_object().expect("properties").keys().map(String::as_str).collect();
        let mut known = KNOWN_KEYS.to_vec();
        keys.sort_unstable();
        known.sort_unstable();
        assert_eq!(keys, known);
    }
}
