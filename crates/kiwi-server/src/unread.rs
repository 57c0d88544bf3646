//! What is said of something that is no message.

use rmcp::model::{ErrorCode, RequestId};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use std::collections::HashSet;

use crate::params;

/// Something that cannot be read as a message, and what its writer is told.
#[derive(Debug, PartialEq)]
pub(crate) struct Unread {
    /// Under which it is answered, where it has one that counts.
    pub id: Option<RequestId>,
    pub code: ErrorCode,
    pub why: String,
}

impl Unread {
    /// It is no message.
    pub fn invalid(id: Option<RequestId>, why: impl Into<String>) -> Self {
        Self { id, code: ErrorCode::INVALID_REQUEST, why: why.into() }
    }

    /// What is wrong with something that the library does not take for a message; nothing where nobody waits for an answer.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        if !begins_with(bytes, b"{") {
            return Some(match serde_json::from_slice::<IgnoredAny>(bytes) {
                Ok(_) => Self::invalid(None, "a message is one JSON object"),
                Err(error) => Self::no_json(&error),
            });
        }
        match serde_json::from_slice::<Outside>(bytes) {
            Ok(outside) if outside.id.is_none() && outside.has_method() && !outside.is_twofold => None,
            Ok(outside) => Some(match outside.problem() {
                Some(why) => Self::invalid(outside.id(), why),
                None => Self::inside(&outside, bytes),
            }),
            Err(error) => Some(Self::no_json(&error)),
        }
    }

    /// What is wrong with the inside of something whose outside is that of a request.
    fn inside(outside: &Outside, bytes: &[u8]) -> Self {
        let id = outside.id();
        let inside = match serde_json::from_slice::<Value>(bytes) {
            Ok(inside) => inside,
            Err(error) if error.to_string().starts_with("recursion limit") => {
                return Self::invalid(id, "it is nested too deep");
            }
            Err(error) => return Self::invalid(id, format!("it cannot be read: {error}")),
        };
        let method = outside.method.as_str().unwrap_or_default();
        match params::misfit(method, inside.get("params")) {
            Some(misfit) => Self { id, code: misfit.code, why: misfit.message.into_owned() },
            None => Self::invalid(id, "it is no message of the protocol"),
        }
    }

    /// What is wrong with something that the library takes for a notification: it is none where it has an id, and somebody
    /// waits for an answer.
    pub fn of_notification(bytes: &[u8]) -> Option<Self> {
        let outside = serde_json::from_slice::<Outside>(bytes).ok()?;
        let why = outside.problem().unwrap_or(WRONG_ID);
        (outside.id.is_some() && outside.has_method()).then(|| Self::invalid(outside.id(), why))
    }

    fn no_json(error: &serde_json::Error) -> Self {
        Self { id: None, code: ErrorCode::PARSE_ERROR, why: format!("it is no JSON: {error}") }
    }

    /// Whether its writer may wait for an answer. Stray output and what is itself an answer is not answered: its writer might
    /// answer in turn.
    pub fn is_meant(&self, bytes: &[u8]) -> bool {
        let is_answer = || serde_json::from_slice::<Outside>(bytes).is_ok_and(|outside| outside.is_answer);
        (self.code != ErrorCode::PARSE_ERROR || begins_with(bytes, b"{[")) && !is_answer()
    }

    /// The answer.
    pub fn answer(&self) -> Value {
        let error = json!({"code": self.code, "message": self.why});
        json!({"jsonrpc": "2.0", "id": self.id, "error": error})
    }
}

const WRONG_ID: &str = "`id` must be a string or a whole number of at most 64 bits";

const TWICE: &str = "it names one of its parts twice";

/// The outside of a message: it can be read however deep the inside is.
#[derive(Default)]
struct Outside {
    /// What is given, also where it is nothing; nothing that counts where it is there twice.
    id: Option<Value>,
    method: Value,
    jsonrpc: Value,
    /// Whether it has the parts of an answer and not those of a request.
    is_answer: bool,
    /// Whether a part is there twice.
    is_twofold: bool,
}

impl<'d> Deserialize<'d> for Outside {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Parts)
    }
}

/// Reads the parts of a message.
struct Parts;

impl<'d> Visitor<'d> for Parts {
    type Value = Outside;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'d>>(self, mut map: A) -> Result<Outside, A::Error> {
        let mut outside = Outside::default();
        let mut seen = HashSet::new();
        while let Some(part) = map.next_key::<String>()? {
            let value = match part.as_str() {
                "id" | "method" | "jsonrpc" => map.next_value::<Value>()?,
                _ => map.next_value::<IgnoredAny>().map(|_| Value::Null)?,
            };
            let is_second = seen.contains(&part);
            outside.is_twofold |= is_second;
            match part.as_str() {
                "id" => outside.id = Some(if is_second { Value::Null } else { value }),
                "method" => outside.method = value,
                "jsonrpc" => outside.jsonrpc = value,
                _ => {}
            }
            seen.insert(part);
        }
        let has = |part: &str| seen.contains(part);
        outside.is_answer = !has("method") && (has("result") || has("error"));
        Ok(outside)
    }
}

impl Outside {
    fn has_method(&self) -> bool {
        self.method.is_string()
    }

    fn id(&self) -> Option<RequestId> {
        self.id.as_ref().and_then(|id| RequestId::deserialize(id).ok())
    }

    fn problem(&self) -> Option<&'static str> {
        if self.is_twofold {
            Some(TWICE)
        } else if self.id.is_some() && self.id().is_none() {
            Some(WRONG_ID)
        } else if self.jsonrpc != "2.0" {
            Some("`jsonrpc` must be \"2.0\"")
        } else if !self.has_method() {
            Some("`method` must be a string")
        } else {
            None
        }
    }
}

/// Whether the first byte that counts is one of these.
fn begins_with(bytes: &[u8], first: &[u8]) -> bool {
    bytes.trim_ascii_start().first().is_some_and(|byte| first.contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(i32, Value, &str)>) {
        let unread = Unread::of(text.as_bytes());
        let told = unread.as_ref().map(Unread::answer);
        assert_eq!(told.is_some(), expected.is_some(), "{text}: {told:?}");
        let (Some(told), Some((code, id, why))) = (told, expected) else { return };
        assert_eq!((&told["error"]["code"], &told["id"]), (&json!(code), &id), "{text}");
        assert!(told["error"]["message"].as_str().unwrap().contains(why), "{text}: {told}");
    }

    #[test]
    fn what_is_wrong_is_told_under_the_id_that_there_is() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for id in ["1.5", "99999999999999999999", "null", "[]"] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            check(&text, Some((-32600, Value::Null, "`id` must be")));
            assert_eq!(Unread::of_notification(text.as_bytes()).unwrap().id, None);
        }
        check("{bad json}", Some((-32700, Value::Null, "no JSON")));
        check("", Some((-32700, Value::Null, "no JSON")));
        check(r#"{"jsonrpc":"2.0","id":1"#, Some((-32700, Value::Null, "no JSON")));
        check("[1]", Some((-32600, Value::Null, "one JSON object")));
        check(r#"{"some":"thing"}"#, Some((-32600, Value::Null, "jsonrpc")));
        check(r#"{"jsonrpc":"2.0","id":"a","method":7}"#, Some((-32600, json!("a"), "`method`")));
        check(r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#, Some((-32600, json!(7), "`jsonrpc`")));
        check(r#"{"id":7,"id":8,"method":"ping"}"#, Some((-32600, Value::Null, "twice")));
        let call = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{{"a":{deep}}}}}"#);
        check(&call, Some((-32600, json!(7), "too deep")));
        for (inside, why) in [(r#""\ud800""#, "hex escape"), ("1e999", "out of range")] {
            let call = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{{"a":{inside}}}}}"#);
            check(&call, Some((-32600, json!(7), why)));
        }
        for part in [r#""method":"ping""#, r#""jsonrpc":"2.0""#, r#""params":{}"#] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{{}},{part}}}"#);
            check(&text, Some((-32600, json!(7), "twice")));
        }
        for (method, params, why) in [
            ("tools/call", "[]", "`params` must be an object"),
            ("tools/call", r#"{"name":"a","_meta":5}"#, "`_meta` must be an object"),
            ("tools/list", r#"{"_meta":5}"#, "`_meta` must be an object"),
            ("subscriptions/listen", "{}", "`notifications` is missing"),
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#);
            check(&text, Some((-32602, json!(7), why)));
        }
        check(r#"{"jsonrpc":"2.0","method":"some/notification","params":[1]}"#, None);
        assert_eq!(Unread::of_notification(br#"{"jsonrpc":"2.0","method":"a"}"#), None);
        assert_eq!(Unread::of_notification(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#), None);
    }

    #[test]
    fn an_answer_is_not_answered() {
        for (text, is_meant) in [
            (r#"{"jsonrpc":"2.0","id":99,"error":{"code":"x"}}"#, false),
            (r#"{"id":1.5,"result":{}}"#, false),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping","result":{}}"#, true),
            (r#"{"jsonrpc":"2.0","id":1.5}"#, true),
        ] {
            let unread = Unread::of(text.as_bytes()).unwrap();
            assert_eq!(unread.is_meant(text.as_bytes()), is_meant, "{text}");
        }
    }
}
