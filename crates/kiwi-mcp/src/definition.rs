//! What a server offers.

use jiff::Timestamp;
use kiwi_model::{Digest, canonical};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The definition of one tool, as its server gave it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// Its name, in the server's own spelling.
    pub name: String,
    /// A title for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it says it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of its parameters.
    pub input_schema: Value,
    /// JSON Schema of its structured result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What it says about itself: `readOnlyHint`, `destructiveHint`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Map<String, Value>>,
}

impl Definition {
    /// The definition as JSON, the same whenever it is the same.
    pub fn document(&self) -> Value {
        serde_json::to_value(self).unwrap_or(Value::Null)
    }

    /// Its identity.
    pub fn digest(&self) -> Digest {
        let document = self.document();
        // A number that has no canonical form is told apart by its own spelling.
        let text = canonical(&document).unwrap_or_else(|_| document.to_string());
        Digest::of(text.as_bytes())
    }
}

/// Everything a server offered at one time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Listing {
    /// Its tools, in its own order.
    pub tools: Vec<Definition>,
    /// What it calls itself and its version.
    pub server_info: Value,
    /// What it tells agents to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The revision of the protocol that was agreed.
    pub protocol_version: String,
    /// What else it can do: `prompts`, `resources`, `completions`, … as it said.
    #[serde(default)]
    pub capabilities: Value,
    /// When it said so.
    pub at: Timestamp,
}
