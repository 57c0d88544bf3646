//! The short way of a request to a process: written by whoever makes it, and answered by whoever reads the answer.
//!
//! The protocol library greets a server, subscribes, and answers its questions. A request of ours needs nothing of that:
//! its line goes out at once, and its answer goes straight to the caller ([`super::calls`]).

use rmcp::model::RequestMetaObject;
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Map, Value};
use std::time::Duration;
use tokio::io::AsyncWrite;

use crate::stream::Outgoing;

/// How long it may take to tell a server that nobody waits any more.
pub(super) const FAREWELL: Duration = Duration::from_secs(5);

/// Tells a server that nobody waits for the answer to a request any more.
pub(super) fn withdraw<W: AsyncWrite + Unpin + Send + 'static>(outgoing: &Outgoing<W>, id: i64) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    let params = serde_json::json!({"requestId": id, "reason": "nobody waits for it any more"});
    let message =
        serde_json::json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    let outgoing = outgoing.clone();
    runtime.spawn(async move {
        let _ = tokio::time::timeout(FAREWELL, outgoing.send(&message)).await;
    });
}

/// A request, as it is written.
#[derive(serde::Serialize)]
pub(super) struct Message<'a> {
    jsonrpc: &'static str,
    id: i64,
    method: &'a str,
    params: Params<'a>,
}

impl<'a> Message<'a> {
    pub fn new(id: i64, method: &'a str, params: &'a Value, meta: Envelope<'a>) -> Self {
        Self { jsonrpc: "2.0", id, method, params: Params { given: params.as_object(), meta } }
    }
}

/// What is asked, with an envelope of ours in place of any other.
struct Params<'a> {
    given: Option<&'a Map<String, Value>>,
    meta: Envelope<'a>,
}

/// What is said beside every request.
pub(super) struct Envelope<'a> {
    /// In all requests of a connection.
    pub always: &'a RequestMetaObject,
    /// In this one; of two words for the same this counts.
    pub own: &'a RequestMetaObject,
    /// Under which its progress is told.
    pub token: i64,
}

impl Serialize for Envelope<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const TOKEN: &str = "progressToken";
        let (always, own) = (&self.always.0.0, &self.own.0.0);
        let always = always.iter().filter(|(name, _)| !own.contains_key(*name));
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in always.chain(own).filter(|(name, _)| *name != TOKEN) {
            map.serialize_entry(name, value)?;
        }
        map.serialize_entry(TOKEN, &self.token)?;
        map.end()
    }
}

impl Serialize for Params<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.given.into_iter().flatten().filter(|(name, _)| *name != "_meta") {
            map.serialize_entry(name, value)?;
        }
        map.serialize_entry("_meta", &self.meta)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_our_envelope_and_no_other() {
        let [mut always, mut own] = [RequestMetaObject::default(), RequestMetaObject::default()];
        always.0.0.extend([
            ("a".into(), 1.into()),
            ("b".into(), 1.into()),
            ("progressToken".into(), 1.into()),
        ]);
        own.0.0.extend([("b".into(), 2.into()), ("progressToken".into(), 2.into())]);
        let read = |params: Value| {
            let meta = Envelope { always: &always, own: &own, token: 7 };
            serde_json::to_string(&Message::new(7, "tools/call", &params, meta)).unwrap()
        };
        let text = read(serde_json::json!({"name": "a\nb", "_meta": {"theirs": 1}}));
        assert_eq!(text.matches("progressToken").count(), 1);
        let message: Value = serde_json::from_str(&text).unwrap();
        let meta = serde_json::json!({"a": 1, "b": 2, "progressToken": 7});
        let params = serde_json::json!({"name": "a\nb", "_meta": meta});
        let expected =
            serde_json::json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
        assert_eq!(message, expected);
        let message: Value = serde_json::from_str(&read(Value::Null)).unwrap();
        assert_eq!(message.pointer("/params/_meta/progressToken"), Some(&Value::from(7)));
    }
}
