//! What the four say about themselves: agents pass over generic descriptions, so these tell what is here.

use kiwi_gate::Overview;
use rmcp::model::Tool;
use serde_json::{Value, json};

/// Names that a description gives.
pub(crate) const NAMED: usize = 10;

/// The four, described by what is here.
pub(crate) fn definitions(overview: &Overview) -> Vec<Tool> {
    let Overview { tools, upstream, directives, knowledge, names } = overview;
    let here = format!(
        "Here: {tools} tools, {upstream} tools of MCP servers, {directives} directives, {knowledge} knowledge entries"
    );
    let names = if names.is_empty() { String::new() } else { format!(", among them {}", names.join(", ")) };
    let describe = |text: &str| format!("{text} {here}{names}.");
    [
        json!({
            "name": "search",
            "title": "Search",
            "description": describe("Find tools, directives and knowledge by what they do."),
            "inputSchema": object(&["query"], &json!({
                "query": {"type": "string",
                    "description": "What is needed, in your own words, or a name; nothing lists what was used lately"},
                "item_type": {"type": "string", "enum": ["tool", "script", "directive", "knowledge", "mcp"],
                    "description": "Only this kind"},
                "source": {"type": "string", "enum": ["project", "user", "system", "registry", "all"], "default": "all"},
                "category": {"type": "string", "description": "Only in this folder of items: data/etl"},
                "tags": {"type": "array", "items": {"type": "string"}, "description": "Only with all of these"},
                "tool_type": {"type": "string", "description": "Only tools of this type: python, bash, api, …"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10}
            })),
            "annotations": {"readOnlyHint": true, "openWorldHint": false}
        }),
        json!({
            "name": "load",
            "title": "Load",
            "description": describe("Read a whole item before using it: its parameters, its text, its files. With \
                `destination` it is copied there. item_type `output` pages through long output."),
            "inputSchema": object(&["item_type", "item_id"], &json!({
                "item_type": {"type": "string", "enum": ["tool", "script", "directive", "knowledge", "mcp", "output"]},
                "item_id": {"type": "string", "description": "Its name; for output, the handle or `next`"},
                "version": {"type": "string", "description": "A version, or which versions will do: 1.4.0, ^2"},
                "source": {"type": "string", "enum": ["project", "user", "system", "registry", "all"]},
                "destination": {"type": "string", "enum": ["project", "user"], "description": "Copy it there"}
            })),
            "annotations": {"destructiveHint": false, "openWorldHint": false}
        }),
        json!({
            "name": "execute",
            "title": "Execute",
            "description": describe("Run a tool, through policy, approval and audit. Other actions create, update, \
                delete, validate or sign an item."),
            "inputSchema": object(&["item_type", "item_id"], &json!({
                "item_type": {"type": "string", "enum": ["tool", "script", "directive", "knowledge", "mcp"]},
                "item_id": {"type": "string"},
                "parameters": {"type": "object", "description": "What the tool takes; for create and update, the item"},
                "action": {"type": "string", "default": "run",
                    "enum": ["run", "create", "update", "delete", "validate", "sign", "publish", "rollback"]},
                "dry_run": {"type": "boolean", "default": false, "description": "Say what would happen"},
                "lock": {"type": "string", "enum": ["off", "warn", "strict"]},
                "version": {"type": "string"}
            })),
            "annotations": {"destructiveHint": true}
        }),
        json!({
            "name": "help",
            "title": "Help",
            "description": "How Kiwi works (guidance), and what to do when you do not get on: say that you are stuck, \
                ask a person (escalate), or mark a place to come back to (checkpoint).",
            "inputSchema": object(&[], &json!({
                "action": {"type": "string", "enum": ["guidance", "stuck", "escalate", "checkpoint"], "default": "guidance"},
                "topic": {"type": "string", "description": "What guidance is about; left out, the topics are listed"},
                "reason": {"type": "string"},
                "attempts": {"description": "What was tried: how often, or a list", "type": ["integer", "array"]},
                "context": {"description": "What a person should know; for escalate: {question, options}"},
                "question": {"type": "string", "description": "For escalate"},
                "options": {"type": "array", "items": {"type": "string"}},
                "session_id": {"type": "string"}
            })),
            "annotations": {"destructiveHint": false, "openWorldHint": false}
        }),
    ]
    .into_iter()
    .filter_map(|definition| serde_json::from_value(definition).ok())
    .collect()
}

fn object(required: &[&str], properties: &Value) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}
