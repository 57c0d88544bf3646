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

impl Permissions {
    /// Reads a YAML document with these keys and no others. An empty one permits nothing.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self::default());
        }
        let document = crate::yaml::parse(bytes)
            .map_err(|error| format!("line {}: {}", error.place.line, error.message))?;
        if document.value.is_null() {
            return Ok(Self::default());
        }
        serde_path_to_error::deserialize(&document.value).map_err(|error| {
            let pointer = format!("/{}", error.path().to_string().replace('.', "/"));
            format!("line {}: {}", document.place(&pointer).line, error.inner())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_exactly_these_keys() {
        let read = |text: &str| Permissions::read(text.as_bytes());
        assert_eq!(read("tools: [\"a\"]\n").unwrap().tools, ["a"]);
        assert_eq!(read("").unwrap(), Permissions::default());
        for (bad, why) in [
            ("tools: [a]\ntool: [b]\n", "unknown field `tool`"),
            ("tools: a\n", "line 1: invalid type"),
            ("tools: [a]\ntools: [b]\n", "line 2"),
            ("- a\n", "invalid type"),
            ("\u{0}", "line 1"),
        ] {
            let error = read(bad).unwrap_err();
            assert!(error.contains(why), "{bad:?}: {error}");
        }
    }
}
