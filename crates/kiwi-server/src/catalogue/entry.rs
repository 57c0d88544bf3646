//! One item.

use kiwi_chain::Tool;
use kiwi_model::Space;
use kiwi_search::Kind;
use kiwi_space::{TextItem, TextKind};
use std::sync::Arc;

/// As much of a description as one line shows.
const MOST_OF_A_LINE: usize = 200;

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
    /// One line.
    pub description: String,
    pub space: Space,
    pub source: Source,
}

impl Entry {
    pub fn of_tool(tool: Arc<Tool>) -> Self {
        let manifest = &tool.manifest;
        let kind = if manifest.tool_type == "mcp" { Kind::Mcp } else { Kind::Tool };
        Self {
            kind,
            id: manifest.tool_id.to_string(),
            description: line(manifest.description.as_deref().unwrap_or_default()),
            space: tool.space,
            source: Source::Tool(tool),
        }
    }

    pub fn of_text(text: Arc<TextItem>) -> Self {
        let kind = match text.kind {
            TextKind::Directive => Kind::Directive,
            TextKind::Knowledge => Kind::Knowledge,
        };
        Self {
            kind,
            id: text.id.clone(),
            description: line(text.description.as_deref().unwrap_or_default()),
            space: text.space,
            source: Source::Text(text),
        }
    }

    /// Whether it is something to call.
    pub fn is_callable(&self) -> bool {
        match &self.source {
            Source::Tool(tool) => is_callable(tool),
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

/// Whether a tool is something to call, rather than something that others run on.
pub(crate) fn is_callable(tool: &Tool) -> bool {
    !matches!(tool.manifest.tool_type.as_str(), "primitive" | "runtime")
}

fn line(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.chars().take(MOST_OF_A_LINE).collect()
}
