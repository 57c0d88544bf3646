//! What to tell whoever wrote a manifest that says nothing, or not what they meant.

use serde_json::{Map, Value};

use super::fields::KNOWN_KEYS;
use crate::slip::meant;

/// What whoever writes them at the top expects to hold; it would in `config`.
const OF_CONFIG: [&str; 6] = ["cwd", "env", "limits", "mounts", "network", "timeout"];

/// Words of JSON Schema that say something about an object, or about the schema itself.
const OF_SCHEMAS: [&str; 34] = [
    "$comment",
    "$defs",
    "$id",
    "$ref",
    "$schema",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "default",
    "definitions",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "description",
    "else",
    "enum",
    "examples",
    "if",
    "maxProperties",
    "minProperties",
    "not",
    "oneOf",
    "patternProperties",
    "properties",
    "propertyNames",
    "readOnly",
    "required",
    "then",
    "title",
    "type",
    "unevaluatedProperties",
    "writeOnly",
    "x-kiwi-secret",
];

/// The keys that mean nothing, and what they would mean elsewhere or spelled otherwise; none if all are known.
pub fn unknown_keys(manifest: &Map<String, Value>) -> Option<String> {
    let unknown = manifest.keys().map(String::as_str).filter(|key| !KNOWN_KEYS.contains(key));
    let told: Vec<String> = unknown
        .map(|key| match meant(key, KNOWN_KEYS.iter().copied()) {
            _ if OF_CONFIG.contains(&key) => format!("{key} (it belongs in `config`)"),
            Some(known) => format!("{key} (did you mean `{known}`?)"),
            None => key.to_owned(),
        })
        .collect();
    (!told.is_empty()).then(|| format!("unknown keys are kept but mean nothing: {}", told.join(", ")))
}

/// That a schema of parameters says nothing about any: most likely it maps their names to what they are.
pub fn empty_schema(parameters: &Value) -> Option<&'static str> {
    let schema = parameters.as_object().filter(|schema| !schema.is_empty())?;
    let says_nothing = !schema.keys().any(|key| OF_SCHEMAS.contains(&key.as_str()));
    says_nothing.then_some(
        "`parameters` is a JSON Schema, and this one accepts anything: write `{type: object, properties: {…}}`, \
         or a list of `{name: …, type: …}`",
    )
}

/// How to write a value whose type is wrong, from what its reader said.
pub fn of_type(key: &str, value: Option<&Value>, said: &str) -> Option<String> {
    if key == "permissions" && value.is_some_and(Value::is_array) {
        return Some("write what is touched, such as `permissions: {filesystem_read: [data]}`".to_owned());
    }
    if said.contains("expected a string") {
        return Some("put the value in quotes".to_owned());
    }
    if said.contains("expected a boolean") {
        return Some("write `true` or `false`".to_owned());
    }
    match value {
        Some(one @ (Value::String(_) | Value::Number(_))) if said.contains("expected a sequence") => {
            Some(format!("write a list: `{key}: [{one}]`"))
        }
        _ => None,
    }
}
