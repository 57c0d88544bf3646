//! What a search finds of a version.

use kiwi_search::{Item, Kind};
use serde_json::Value;

/// Reads what counts from a manifest, leniently: the manifest was judged when it was published.
pub(super) fn item(tool_id: &str, version: &str, tool_type: &str, manifest: &Value) -> Item {
    let text = |key: &str| manifest.get(key).and_then(Value::as_str).map(str::to_owned);
    let tags = manifest.get("tags").and_then(Value::as_array).into_iter().flatten();
    Item {
        kind: Kind::Tool,
        id: tool_id.to_owned(),
        title: text("title"),
        version: Some(version.to_owned()),
        description: text("description").unwrap_or_default(),
        parameters: parameters(manifest.get("parameters").unwrap_or(&Value::Null)),
        signature: String::new(),
        tags: tags.filter_map(Value::as_str).map(str::to_owned).collect(),
        category: text("category").unwrap_or_default(),
        tool_type: Some(tool_type.to_owned()),
        runtime: None,
        is_support: tool_type == "runtime",
        is_alone: false,
        body: String::new(),
    }
}

/// Names and meanings, whether they are written as a schema, as a map or as a list.
fn parameters(parameters: &Value) -> Vec<(String, String)> {
    let meaning = |value: &Value| {
        value.get("description").and_then(Value::as_str).or(value.as_str()).unwrap_or_default().to_owned()
    };
    match parameters {
        Value::Array(list) => list
            .iter()
            .filter_map(|one| Some((one.get("name")?.as_str()?.to_owned(), meaning(one))))
            .collect(),
        Value::Object(map) => {
            let map = map.get("properties").and_then(Value::as_object).unwrap_or(map);
            map.iter().map(|(name, value)| (name.clone(), meaning(value))).collect()
        }
        _ => Vec::new(),
    }
}
