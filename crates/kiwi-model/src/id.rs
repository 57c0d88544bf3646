//! Tool ids: `[a-z][a-z0-9_]*` segments, dotted by namespace; for a tool of an upstream server, the server's name and
//! the tool's own spelling.

use serde::{Deserialize, Serialize};

/// Namespaces that belong to the system: no other space may define a tool in them.
pub const SYSTEM_NAMESPACES: [&str; 4] = ["filesystem", "shell", "kiwi", "mcp"];

/// The two primitives; they too cannot be shadowed.
const PRIMITIVES: [&str; 2] = ["subprocess", "http_client"];

/// File systems limit a name to 255 bytes; this leaves room for `@version` and an extension.
const MAX_LEN: usize = 128;

/// The same for the id of an upstream tool, whose parts are chosen by others.
const MAX_UPSTREAM_LEN: usize = 200;

/// The id of a tool, known to be well formed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolId(String);

/// Why a string is not a tool id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{id}` is not a tool id: expected lowercase letters, digits and `_`, in segments joined by `.`, each starting with a letter"
)]
pub struct IdError {
    /// What was given, cut to a length a person can read.
    pub id: String,
}

impl ToolId {
    /// Reads an id that a file can define.
    pub fn parse(id: &str) -> Result<Self, IdError> {
        if id.len() <= MAX_LEN && id.split('.').all(is_segment) {
            Ok(Self(id.to_owned()))
        } else {
            Err(IdError { id: id.chars().take(MAX_LEN).collect() })
        }
    }

    /// Reads an id that can be called: one that a file can define, or one of an upstream server's tools.
    pub fn callable(id: &str) -> Result<Self, IdError> {
        Self::parse(id).or_else(|error| {
            let (server, tool) = id.split_once('.').ok_or(error.clone())?;
            Self::upstream(server, tool).ok_or(error)
        })
    }

    /// The id of an upstream server's tool; none where its name holds what no id can.
    pub fn upstream(server: &str, tool: &str) -> Option<Self> {
        let mut bytes = server.bytes();
        let is_server = bytes.next().is_some_and(|b| b.is_ascii_lowercase())
            && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-');
        let mut bytes = tool.bytes();
        let is_tool = bytes.next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_')
            && bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
        let id = format!("{server}.{tool}");
        (is_server && is_tool && id.len() <= MAX_UPSTREAM_LEN).then_some(Self(id))
    }

    /// The id as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether only the system space may define this id.
    pub fn is_reserved(&self) -> bool {
        PRIMITIVES.contains(&self.as_str())
            || self.0.split('.').next().is_some_and(|first| SYSTEM_NAMESPACES.contains(&first))
    }
}

fn is_segment(segment: &str) -> bool {
    let mut bytes = segment.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_lowercase())
        && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

impl std::fmt::Display for ToolId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<String> for ToolId {
    type Error = IdError;
    fn try_from(id: String) -> Result<Self, IdError> {
        Self::callable(&id)
    }
}

impl From<ToolId> for String {
    fn from(id: ToolId) -> Self {
        id.0
    }
}

impl std::borrow::Borrow<str> for ToolId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_dotted_segments_and_refuses_the_rest() {
        for good in ["a", "data_processor", "filesystem.read", "a1.b2.c_3"] {
            assert!(ToolId::parse(good).is_ok(), "{good}");
        }
        for bad in
            ["", ".", "a.", ".a", "A", "1a", "a-b", "a/b", "..", "a..b", "é", "a\0", " a", &"a".repeat(129)]
        {
            assert!(ToolId::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_upstream_tool_keeps_its_own_spelling() {
        for good in ["github.create-pr", "my-server.getThing", "a.B.c", "a._x", "a.1", "a.b"] {
            assert_eq!(ToolId::callable(good).map(String::from), Ok(good.to_owned()));
        }
        for bad in [
            "create-pr",
            "A.b",
            "a.",
            "a.-x",
            "a.b/c",
            "a..b",
            "a.b c",
            "a.é",
            "-a.b",
            &format!("a.{}", "b".repeat(200)),
        ] {
            assert!(ToolId::callable(bad).is_err(), "{bad:?}");
        }
        assert!(ToolId::parse("github.create-pr").is_err());
    }

    #[test]
    fn primitives_and_system_namespaces_are_reserved() {
        for (id, reserved) in [
            ("subprocess", true),
            ("http_client", true),
            ("filesystem.read", true),
            ("mcp.x", true),
            ("subprocess2", false),
            ("my.filesystem", false),
        ] {
            assert_eq!(ToolId::parse(id).map(|id| id.is_reserved()), Ok(reserved), "{id}");
        }
    }
}
