//! A call that an upstream MCP server answers.

use serde_json::{Map, Value, json};

use crate::merge::Merged;

/// The key by which a runtime says that its children are answered by a server, and the protocol it means by that.
const PROTOCOL: (&str, &str) = ("protocol", "mcp");

/// One request to an upstream server.
#[derive(Debug, Clone, PartialEq)]
pub struct UpstreamCall {
    /// Which server.
    pub server: String,
    /// What is asked of it.
    pub action: UpstreamAction,
    /// With what.
    pub arguments: Map<String, Value>,
    /// Seconds it may take.
    pub timeout: Option<f64>,
}

/// What is asked of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpstreamAction {
    /// One of its tools, by the server's own spelling.
    Tool(String),
    /// Another method of the protocol.
    Method(String),
}

impl UpstreamAction {
    /// The name that permissions know it by.
    pub fn name(&self) -> &str {
        let (Self::Tool(name) | Self::Method(name)) = self;
        name
    }

    /// The method of the protocol.
    pub fn method(&self) -> &str {
        match self {
            Self::Tool(_) => "tools/call",
            Self::Method(method) => method,
        }
    }

    /// What the protocol sends.
    pub fn params(&self, arguments: Map<String, Value>) -> Value {
        match self {
            Self::Tool(name) => {
                let named = ("name".to_owned(), Value::from(name.as_str()));
                Value::Object(
                    [named, ("arguments".to_owned(), Value::Object(arguments))].into_iter().collect(),
                )
            }
            Self::Method(_) => Value::Object(arguments),
        }
    }
}

impl UpstreamCall {
    /// Whom a chain asks, and for what; none where it ends in a primitive of its own. Taken as it stands: no parameter
    /// has a say in it.
    pub(crate) fn target(merged: &Merged) -> Option<(&str, UpstreamAction)> {
        let word = |key: &str| merged.template.get(key).and_then(Value::as_str);
        if word(PROTOCOL.0) != Some(PROTOCOL.1) {
            return None;
        }
        let action = match (word("tool"), word("request")) {
            (Some(tool), _) => UpstreamAction::Tool(tool.to_owned()),
            (None, method) => UpstreamAction::Method(method?.to_owned()),
        };
        Some((word("server")?, action))
    }

    pub(crate) fn describe(&self) -> Value {
        let params = self.action.params(self.arguments.clone());
        json!({"server": self.server, "method": self.action.method(), "params": params})
    }
}
