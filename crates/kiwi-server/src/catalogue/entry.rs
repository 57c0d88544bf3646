//! One item.

use kiwi_chain::Tool;
use kiwi_model::Space;
use kiwi_space::{TextItem, TextKind};
use serde_json::{Value, json};
use std::sync::Arc;

/// As much of a description as one line shows.
const MOST_OF_A_LINE: usize = 200;

/// What kind of item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Tool,
    /// A tool of an upstream server.
    Mcp,
    Directive,
    Knowledge,
}

impl Kind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Mcp => "mcp",
            Self::Directive => "directive",
            Self::Knowledge => "knowledge",
        }
    }

    /// Items of one family share their names.
    pub const fn family(self) -> &'static str {
        match self {
            Self::Tool | Self::Mcp => "tool",
            Self::Directive => "directive",
            Self::Knowledge => "knowledge",
        }
    }
}

/// What stands behind an entry.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Tool(Arc<Tool>),
    Text(Arc<TextItem>),
}

/// One item, as it is found.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub kind: Kind,
    pub id: String,
    pub version: Option<String>,
    /// One line.
    pub description: String,
    /// `(path: string, limit?: integer)`.
    pub signature: String,
    /// Names of its parameters.
    pub parameters: Vec<String>,
    pub tags: Vec<String>,
    pub category: String,
    pub space: Space,
    pub source: Source,
}

impl Entry {
    pub fn of_tool(tool: Arc<Tool>) -> Self {
        let manifest = &tool.manifest;
        let schema = manifest.parameters.clone().unwrap_or_else(|| json!({}));
        let kind = if manifest.tool_type == "mcp" { Kind::Mcp } else { Kind::Tool };
        Self {
            kind,
            id: manifest.tool_id.to_string(),
            version: Some(manifest.version.to_string()),
            description: line(manifest.description.as_deref().unwrap_or_default()),
            signature: signature(&schema),
            parameters: names(&schema),
            tags: manifest.tags.clone(),
            category: tool.category.clone(),
            space: tool.space,
            source: Source::Tool(tool),
        }
    }

    pub fn of_text(text: Arc<TextItem>) -> Self {
        let kind = match text.kind {
            TextKind::Directive => Kind::Directive,
            TextKind::Knowledge => Kind::Knowledge,
        };
        let input = |input: &kiwi_space::TextInput| {
            format!("{}{}: {}", input.name, if input.required { "" } else { "?" }, input.kind)
        };
        let inputs: Vec<String> = text.inputs.iter().map(input).collect();
        Self {
            kind,
            id: text.id.clone(),
            version: text.version.clone(),
            description: line(text.description.as_deref().unwrap_or_default()),
            signature: format!("({})", inputs.join(", ")),
            parameters: text.inputs.iter().map(|input| input.name.clone()).collect(),
            tags: text.tags.clone(),
            category: text.category.clone(),
            space: text.space,
            source: Source::Text(text),
        }
    }

    /// Whether it is something to call, rather than something that others run on.
    pub fn is_callable(&self) -> bool {
        match &self.source {
            Source::Tool(tool) => !matches!(tool.manifest.tool_type.as_str(), "primitive" | "runtime"),
            Source::Text(_) => false,
        }
    }

    /// What changes when the item does.
    pub fn fingerprint(&self) -> String {
        let content = match &self.source {
            Source::Tool(tool) => tool.integrity.to_string(),
            Source::Text(text) => text.sha256.to_string(),
        };
        format!("{} {} {} {content}", self.kind.as_str(), self.space.as_str(), self.id)
    }
}

fn line(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.chars().take(MOST_OF_A_LINE).collect()
}

fn names(schema: &Value) -> Vec<String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flat_map(|it| it.keys().cloned()).collect()
}

/// The parameters on one line: those that are needed first, as they stand; the others with `?`.
fn signature(schema: &Value) -> String {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let one = |(name, schema): (&String, &Value)| {
        let kind = match schema.get("type") {
            Some(Value::String(kind)) => kind.clone(),
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|"),
            _ => "any".to_owned(),
        };
        let mark = if required.contains(&name.as_str()) { "" } else { "?" };
        format!("{name}{mark}: {kind}")
    };
    let mut parts: Vec<String> = properties.into_iter().flatten().map(one).collect();
    parts.sort_by_key(|part| part.contains("?:"));
    format!("({})", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_fits_on_a_line() {
        let schema = json!({"type": "object", "required": ["path"], "properties": {
            "deep": {"type": ["boolean", "null"]}, "path": {"type": "string"}, "x": {}}});
        assert_eq!(signature(&schema), "(path: string, deep?: boolean|null, x?: any)");
        assert_eq!(signature(&json!({})), "()");
    }
}
