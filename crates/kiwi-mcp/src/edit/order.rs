//! The order in which people write the keys of an entry.

use serde_json::{Map, Value};

const ORDER: [&str; 14] = [
    "enabled",
    "type",
    "name",
    "description",
    "command",
    "cmd",
    "url",
    "args",
    "env",
    "cwd",
    "headers",
    "auth",
    "isolation",
    "timeout",
];

/// The entries of a map, those first that say what it is.
pub(super) fn ordered(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let rank = |key: &str| ORDER.iter().position(|known| *known == key).unwrap_or(ORDER.len());
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_by_key(|(key, _)| (rank(key), key.as_str()));
    entries
}

/// A list of plain values on one line; none where it holds more than those.
pub(super) fn one_line(items: &[Value]) -> Option<String> {
    let is_plain = |item: &Value| !item.is_array() && !item.is_object();
    let line = || items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    items.iter().all(is_plain).then(|| format!("[{}]", line()))
}
