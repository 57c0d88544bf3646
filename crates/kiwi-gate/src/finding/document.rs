//! Items as they are indexed.

use kiwi_chain::Tool;
use kiwi_registry::protocol::FoundTool;
use kiwi_search::{Item, Kind};
use kiwi_space::{Sighted, TextItem, TextKind};
use serde_json::Value;

/// What is indexed of what was read.
pub(super) fn item(sighted: &Sighted) -> Item {
    match sighted {
        Sighted::Tool(tool) => of_tool(tool),
        Sighted::Text(text) => of_text(text),
    }
}

/// What is indexed of a tool.
pub(super) fn of_tool(tool: &Tool) -> Item {
    let manifest = &tool.manifest;
    let schema = manifest.parameters.as_ref().unwrap_or(&Value::Null);
    let is_upstream = manifest.tool_type == "mcp";
    Item {
        kind: if is_upstream { Kind::Mcp } else { Kind::Tool },
        id: manifest.tool_id.to_string(),
        title: manifest.title.clone(),
        version: Some(manifest.version.to_string()),
        description: manifest.description.clone().unwrap_or_default(),
        parameters: meanings(schema),
        signature: signature(schema),
        tags: manifest.tags.clone(),
        category: tool.category.clone(),
        tool_type: Some(manifest.tool_type.clone()),
        runtime: runtime(&manifest.tool_type, manifest.executor.as_ref().map(|it| it.id.as_str())),
        is_support: matches!(manifest.tool_type.as_str(), "primitive" | "runtime"),
        is_alone: !is_upstream && manifest.lib_imports.is_empty(),
        body: String::new(),
    }
}

/// What is ranked of a tool that a registry offers.
pub(super) fn of_offer(found: &FoundTool) -> Item {
    let text = |key: &str| found.manifest.get(key).and_then(Value::as_str).map(str::to_owned);
    let schema = found.manifest.get("parameters").unwrap_or(&Value::Null);
    let tags = found.manifest.get("tags").and_then(Value::as_array).into_iter().flatten();
    let tool_type = text("tool_type").unwrap_or_default();
    let executor = found.manifest.get("executor");
    let executor = executor.map(|it| it.get("id").unwrap_or(it)).and_then(Value::as_str);
    Item {
        kind: Kind::Tool,
        id: found.tool_id.to_string(),
        title: text("title"),
        version: Some(found.version.to_string()),
        description: text("description").unwrap_or_default(),
        parameters: meanings(schema),
        signature: signature(schema),
        tags: tags.filter_map(Value::as_str).map(str::to_owned).collect(),
        category: text("category").unwrap_or_default(),
        is_support: tool_type == "runtime",
        runtime: runtime(&tool_type, executor),
        tool_type: Some(tool_type),
        is_alone: false,
        body: String::new(),
    }
}

fn of_text(text: &TextItem) -> Item {
    let input = |input: &kiwi_space::TextInput| {
        format!("{}{}: {}", input.name, if input.required { "" } else { "?" }, input.kind)
    };
    let item = Item {
        kind: match text.kind {
            TextKind::Directive => Kind::Directive,
            TextKind::Knowledge => Kind::Knowledge,
        },
        id: text.id.clone(),
        title: text.title.clone(),
        version: text.version.clone(),
        description: text.description.clone().unwrap_or_default(),
        parameters: text.inputs.iter().map(|it| (it.name.clone(), it.description.clone())).collect(),
        signature: format!("({})", text.inputs.iter().map(input).collect::<Vec<_>>().join(", ")),
        tags: text.tags.clone(),
        category: text.category.clone(),
        tool_type: None,
        runtime: None,
        is_support: false,
        is_alone: true,
        body: text.text.clone(),
    };
    item.bounded()
}

/// What runs a script.
fn runtime(tool_type: &str, executor: Option<&str>) -> Option<String> {
    executor.filter(|_| tool_type == "script").map(str::to_owned)
}

/// The parameters of a schema, and what they mean.
fn meanings(schema: &Value) -> Vec<(String, String)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let meaning = |(name, schema): (&String, &Value)| {
        let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        (name.clone(), text.to_owned())
    };
    properties.into_iter().flatten().map(meaning).collect()
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
    use serde_json::json;

    #[test]
    fn a_signature_fits_on_a_line() {
        let schema = json!({"type": "object", "required": ["path"], "properties": {
            "deep": {"type": ["boolean", "null"]}, "path": {"type": "string"}, "x": {}}});
        assert_eq!(signature(&schema), "(path: string, deep?: boolean|null, x?: any)");
        assert_eq!(signature(&json!({})), "()");
    }
}
