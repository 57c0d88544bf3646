//! What to tell whoever wrote a manifest that says nothing, or not what they meant.

use serde_json::{Map, Value};

use super::fields::KNOWN_KEYS;
use super::parameters::ParameterSpec;
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

/// What a parameter in a list has beside words of JSON Schema.
const OF_PARAMETERS: [&str; 5] = ["default", "description", "name", "required", "type"];

const ANYTHING: &str = "`parameters` is a JSON Schema, and this one accepts anything: write \
    `{type: object, properties: {…}}`, or a list of `{name: …, type: …}`";

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

/// What of the parameters is most likely not what was meant.
pub fn parameters(written: &ParameterSpec) -> Vec<String> {
    let slip = |of: &str, key: &str, known: &[&'static str]| {
        let meant = meant(key, known.iter().copied())?;
        Some(format!("`{key}` of `{of}` means nothing; did you mean `{meant}`?"))
    };
    let schema = match written {
        ParameterSpec::List(list) => {
            let each = list.iter().flat_map(|it| it.rest.keys().map(|key| (&it.name, key)));
            return each.filter_map(|(name, key)| slip(name, key, &OF_PARAMETERS)).collect();
        }
        ParameterSpec::Schema(schema) => schema,
    };
    let unknown: Vec<&String> = schema.keys().filter(|key| !OF_SCHEMAS.contains(&key.as_str())).collect();
    if !unknown.is_empty() && unknown.len() == schema.len() {
        // Most likely it maps names to what they are.
        return vec![ANYTHING.to_owned()];
    }
    unknown.into_iter().filter_map(|key| slip("parameters", key, &OF_SCHEMAS)).collect()
}

/// How to write what stands at a JSON pointer, from what its reader said about its type.
pub fn of_type(manifest: &Value, pointer: &str, said: &str) -> Option<String> {
    if manifest.get("permissions").is_some_and(Value::is_array) && pointer.starts_with("/permissions") {
        return Some("write what is touched, such as `permissions: {filesystem_read: [data]}`".to_owned());
    }
    if said.contains("expected a string") {
        return Some("put the value in quotes".to_owned());
    }
    if said.contains("expected a boolean") {
        return Some("write `true` or `false`".to_owned());
    }
    let key = pointer.rsplit('/').next().unwrap_or_default();
    match manifest.pointer(pointer) {
        Some(one @ (Value::String(_) | Value::Number(_))) if said.contains("expected a sequence") => {
            Some(format!("write a list: `{key}: [{one}]`"))
        }
        _ => None,
    }
}
