//! Parameters: read from `k=v`, completed with defaults, checked against the schema.

use jsonschema::Validator;
use kiwi_model::strict_json;
use serde_json::{Map, Value};

use crate::error::ChainError;
use crate::schema::complaints;

/// Reads the value of `name=text` as the schema says. Without a schema, or where it names no type, it is a string.
pub fn read_assignment(schema: Option<&Value>, name: &str, text: &str) -> Value {
    let property = schema.and_then(|schema| schema.get("properties")?.get(name));
    let types: Vec<&str> = match property.and_then(|property| property.get("type")) {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let as_string = || Value::String(text.to_owned());
    for kind in types {
        let value = match kind {
            "integer" => text.parse::<i64>().ok().map(Value::from),
            "number" => serde_json::from_str::<Value>(text).ok().filter(Value::is_number),
            "boolean" => text.parse::<bool>().ok().map(Value::from),
            "null" => (text == "null").then_some(Value::Null),
            "array" => strict_json(text).ok().filter(Value::is_array),
            "object" => strict_json(text).ok().filter(Value::is_object),
            _ => Some(as_string()),
        };
        if let Some(value) = value {
            return value;
        }
    }
    as_string()
}

/// Fills in what the schema gives a default for.
pub(crate) fn with_defaults(schema: &Value, params: Map<String, Value>) -> Map<String, Value> {
    let mut params = params;
    let Some(Value::Object(properties)) = schema.get("properties") else { return params };
    for (name, property) in properties {
        match params.get_mut(name) {
            None => {
                if let Some(default) = property.get("default") {
                    params.insert(name.clone(), default.clone());
                }
            }
            Some(Value::Object(inner)) => *inner = with_defaults(property, std::mem::take(inner)),
            Some(_) => {}
        }
    }
    params
}

/// The parameters, if they keep to the schema; otherwise every way in which they break it.
pub(crate) fn checked(
    schema: &Value,
    validator: &Validator,
    params: Map<String, Value>,
) -> Result<Map<String, Value>, ChainError> {
    // Lent as a value, and taken back: they may be large.
    let params = Value::Object(params);
    // To tell what is wrong takes longer than to see that nothing is.
    let is_valid = validator.is_valid(&params);
    match params {
        Value::Object(params) if is_valid => Ok(params),
        params => {
            let problems = complaints(validator, &params).iter().map(ToString::to_string).collect();
            Err(ChainError::InvalidParams { problems, schema: schema.clone() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn assignments_follow_the_schema() {
        let schema = json!({"properties": {"n": {"type": "integer"}, "f": {"type": "number"}, "b": {"type": "boolean"}, "l": {"type": "array"}, "m": {"type": ["integer", "null"]}, "s": {"type": "string"}, "any": {}}});
        let check = |name: &str, text: &str, expect: Value| {
            assert_eq!(read_assignment(Some(&schema), name, text), expect, "{name}={text}");
        };
        check("n", "3", json!(3));
        check("n", "three", json!("three"));
        check("f", "1.5", json!(1.5));
        check("b", "true", json!(true));
        check("l", "[1,2]", json!([1, 2]));
        check("m", "null", json!(null));
        check("s", "3", json!("3"));
        check("any", "3", json!("3"));
        assert_eq!(read_assignment(None, "n", "3"), json!("3"));
    }

    #[test]
    fn defaults_reach_into_objects() {
        let schema =
            json!({"properties": {"a": {"default": 1}, "o": {"properties": {"b": {"default": [2]}}}}});
        let params = json!({"o": {}}).as_object().cloned().unwrap_or_default();
        assert_eq!(Value::Object(with_defaults(&schema, params)), json!({"a": 1, "o": {"b": [2]}}));
    }
}
