//! What is said of something that is no message.

use rmcp::model::{ErrorCode, RequestId};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

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
            Ok(outside) if outside.id.is_none() && outside.has_method() => None,
            Ok(outside) => {
                let why = outside.problem().unwrap_or_else(|| match serde_json::from_slice::<Value>(bytes) {
                    Ok(_) => "it is no message of the protocol",
                    Err(_) => "it is nested too deep",
                });
                Some(Self::invalid(outside.id(), why))
            }
            Err(error) if error.is_data() => Some(Self::invalid(None, "it names one of its parts twice")),
            Err(error) => Some(Self::no_json(&error)),
        }
    }

    /// What is wrong with something that the library takes for a notification: it is none where it has an id, and somebody
    /// waits for an answer.
    pub fn of_notification(bytes: &[u8]) -> Option<Self> {
        let outside = serde_json::from_slice::<Outside>(bytes).ok()?;
        (outside.id.is_some() && outside.has_method()).then(|| Self::invalid(outside.id(), WRONG_ID))
    }

    fn no_json(error: &serde_json::Error) -> Self {
        Self { id: None, code: ErrorCode::PARSE_ERROR, why: format!("it is no JSON: {error}") }
    }

    /// Whether its writer may have meant it as a message. Stray output is not answered: its writer might answer in turn.
    pub fn is_meant(&self, bytes: &[u8]) -> bool {
        self.code != ErrorCode::PARSE_ERROR || begins_with(bytes, b"{[")
    }

    /// The answer.
    pub fn answer(&self) -> Value {
        let error = json!({"code": self.code, "message": self.why});
        json!({"jsonrpc": "2.0", "id": self.id, "error": error})
    }
}

const WRONG_ID: &str = "`id` must be a string or a whole number of at most 64 bits";

/// The outside of a message: it can be read however deep the inside is.
#[derive(Deserialize)]
struct Outside {
    #[serde(default, deserialize_with = "given")]
    id: Option<Value>,
    #[serde(default)]
    method: Value,
    #[serde(default)]
    jsonrpc: Value,
}

/// What is given, also where it is nothing.
fn given<'d, D: Deserializer<'d>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

impl Outside {
    fn has_method(&self) -> bool {
        self.method.is_string()
    }

    fn id(&self) -> Option<RequestId> {
        self.id.as_ref().and_then(|id| RequestId::deserialize(id).ok())
    }

    fn problem(&self) -> Option<&'static str> {
        if self.id.is_some() && self.id().is_none() {
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
        check(r#"{"jsonrpc":"2.0","method":"some/notification","params":[1]}"#, None);
        assert_eq!(Unread::of_notification(br#"{"jsonrpc":"2.0","method":"a"}"#), None);
        assert_eq!(Unread::of_notification(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#), None);
    }
}
