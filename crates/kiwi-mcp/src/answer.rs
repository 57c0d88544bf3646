//! What a server answered.

use serde_json::Value;

/// The result of one request, as the server gave it.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer(pub Value);

impl Answer {
    /// Whether a tool says that it failed.
    pub fn is_error(&self) -> bool {
        self.0.get("isError").and_then(Value::as_bool).unwrap_or(false)
    }

    /// What a program wants of a tool's answer: the structured result, else the one text, else the content as it is.
    pub fn value(&self) -> Value {
        if let Some(structured) = self.0.get("structuredContent").filter(|value| !value.is_null()) {
            return structured.clone();
        }
        let content = self.0.get("content").unwrap_or(&Value::Null);
        match content.as_array().map(Vec::as_slice) {
            Some([]) => Value::Null,
            Some([only]) => only.get("text").unwrap_or(content).clone(),
            _ => content.clone(),
        }
    }

    /// Every text of a tool's answer, one after the other.
    pub fn text(&self) -> String {
        let parts = self.0.get("content").and_then(Value::as_array);
        let texts = parts.into_iter().flatten().filter_map(|part| part.get("text")?.as_str());
        texts.collect::<Vec<_>>().join("\n")
    }
}
