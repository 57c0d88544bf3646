//! What a tool needs and what a caller may touch: the same keys on both sides.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A set of permissions. Absent or empty means nothing of that kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Permissions {
    /// Globs of paths that may be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filesystem_read: Vec<String>,
    /// Globs of paths that may be written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filesystem_write: Vec<String>,
    /// Globs of tool ids that may be called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Programs a shell command may run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shell_commands: Vec<String>,
    /// Actions allowed per upstream MCP server.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp_actions: BTreeMap<String, Vec<String>>,
    /// Hosts that may be reached.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub network_hosts: Vec<String>,
    /// Environment variables that may be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Secrets that may be used, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// Anything of the above that is refused whatever else is allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
}
