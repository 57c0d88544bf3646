//! Parameters: a JSON Schema, or the list form that becomes one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Either spelling of `parameters`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a JSON Schema or a list of {name, type, required, default, description}"
)]
pub enum ParameterSpec {
    /// The list form.
    List(Vec<Parameter>),
    /// A JSON Schema.
    Schema(Map<String, Value>),
}

/// One parameter of the list form.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// A JSON Schema type; `string` when left out. Python's names are understood too.
    #[serde(rename = "type", default)]
    pub kind: Option<String>,
    /// Whether a call must give it.
    #[serde(default)]
    pub required: bool,
    /// Its value when a call does not give it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// Anything else JSON Schema knows (`enum`, `minimum`, …).
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl ParameterSpec {
    /// Where the list form names a parameter once more, and which.
    pub fn repeated(&self) -> Vec<(usize, String)> {
        let Self::List(list) = self else { return Vec::new() };
        let mut names = BTreeSet::new();
        let again = list.iter().enumerate().filter(|(_, parameter)| !names.insert(&parameter.name));
        again.map(|(index, parameter)| (index, parameter.name.clone())).collect()
    }

    /// The JSON Schema either spelling means. The list form names every parameter, so others are refused.
    pub fn into_schema(self) -> Value {
        let list = match self {
            Self::Schema(schema) => return Value::Object(schema),
            Self::List(list) => list,
        };
        let mut properties = Map::new();
        let mut required = Vec::new();
        for parameter in list {
            let mut property = parameter.rest;
            property.insert("type".into(), json!(json_type(parameter.kind.as_deref().unwrap_or("string"))));
            if let Some(default) = parameter.default {
                property.insert("default".into(), default);
            }
            if let Some(description) = parameter.description {
                property.insert("description".into(), json!(description));
            }
            if parameter.required {
                required.push(Value::String(parameter.name.clone()));
            }
            properties.insert(parameter.name, Value::Object(property));
        }
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    }
}

fn json_type(name: &str) -> &str {
    match name {
        "str" | "path" => "string",
        "int" => "integer",
        "float" => "number",
        "bool" => "boolean",
        "list" => "array",
        "dict" => "object",
        other => other,
    }
}
