//! JSON in which no key is given twice: which of the two was meant would be anybody's guess.

use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// Reads one JSON value; a key that is given twice in one object is an error.
pub fn strict_json(text: &str) -> serde_json::Result<Value> {
    let Strict(value) = serde_json::from_str(text)?;
    Ok(value)
}

struct Strict(Value);

impl<'de> serde::Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((key, Strict(value))) = entries.next_entry::<String, Strict>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("the key `{}` is given twice", key.escape_debug())));
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_ever() {
        for text in [
            "null",
            "true",
            "-3",
            "18446744073709551615",
            "1.5e300",
            "\"a\\u007f\"",
            "[]",
            "{\"b\": [1, {\"a\": null}], \"a\": {\"b\": 1}}",
        ] {
            assert_eq!(strict_json(text).ok(), serde_json::from_str(text).ok(), "{text}");
        }
        assert!(
            strict_json("{} {}").is_err() && strict_json("").is_err() && strict_json("{\"a\":}").is_err()
        );
    }

    #[test]
    fn a_key_that_is_given_twice_is_an_error() {
        for text in ["{\"a\": 1, \"a\": 2}", "[{\"b\": {\"a\": 1, \"a\": 1}}]", "{\"a\": 1, \"\\u0061\": 2}"]
        {
            let error = strict_json(text).expect_err(text).to_string();
            assert!(error.starts_with("the key `a` is given twice"), "{error}");
        }
    }
}
