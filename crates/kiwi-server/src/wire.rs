//! A client at the other end of two streams: one message a line.
//!
//! Calls of tools are most of what a client says and all that is urgent, so they are read here, in one go. Everything
//! else is read by the protocol library, which tries one form after the other.

use kiwi_mcp::stream::{Incoming, LONGEST, Outgoing, Read};
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, JsonObject, MetaObject,
    RequestId, RequestMetaObject, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde::Deserialize;
use std::io;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::unread::Unread;

/// The streams.
pub(crate) struct Wire<R, W> {
    incoming: Incoming<R>,
    outgoing: Outgoing<W>,
}

impl<R, W> Wire<R, W>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    /// A client that writes to one stream and reads from another.
    pub fn new(read: R, write: W) -> Self {
        Self { incoming: Incoming::new(read), outgoing: Outgoing::new(write) }
    }
}

impl<R, W> Transport<RoleServer> for Wire<R, W>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.outgoing.send(&message)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let heard = match self.incoming.next().await {
                Read::Line(line) => heard(line),
                Read::Overlong => {
                    let why = format!("a message is at most {} MiB long", LONGEST >> 20);
                    Heard::Wrong(Unread::invalid(None, why))
                }
                // Who ends with a message need not end its line.
                Read::End => match self.incoming.rest() {
                    Some(rest) => heard(&rest),
                    None => return None,
                },
            };
            match heard {
                Heard::Message(message) => return Some(*message),
                Heard::Nothing => {}
                // It is written to its end, whoever waits.
                Heard::Wrong(unread) => drop(self.outgoing.send(&unread.answer())),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.outgoing.close();
        Ok(())
    }
}

/// What a line says.
enum Heard {
    Message(Box<ClientJsonRpcMessage>),
    /// Nothing that is meant for this, or nothing that may be answered.
    Nothing,
    /// Something that is no message; whose answer says so.
    Wrong(Unread),
}

fn heard(line: &[u8]) -> Heard {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    if let Some(call) = Call::read(line) {
        return Heard::Message(Box::new(call));
    }
    let unread = match serde_json::from_slice(line) {
        Ok(message @ ClientJsonRpcMessage::Notification(_)) => match Unread::of_notification(line) {
            Some(unread) => Some(unread),
            None => return Heard::Message(Box::new(message)),
        },
        Ok(message) => return Heard::Message(Box::new(message)),
        Err(_) => Unread::of(line).filter(|unread| unread.is_meant(line)),
    };
    unread.map_or(Heard::Nothing, Heard::Wrong)
}

/// A call of a tool. What has anything else in it is left to the library.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call<'a> {
    jsonrpc: &'a str,
    id: RequestId,
    method: &'a str,
    params: Params,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    #[serde(rename = "_meta")]
    meta: Option<JsonObject>,
    name: String,
    arguments: Option<JsonObject>,
}

impl Call<'_> {
    fn read(line: &[u8]) -> Option<ClientJsonRpcMessage> {
        let call: Call<'_> = serde_json::from_slice(line).ok()?;
        if (call.jsonrpc, call.method) != ("2.0", "tools/call") {
            return None;
        }
        let mut params = CallToolRequestParams::new(call.params.name);
        params.arguments = call.params.arguments;
        let mut request = CallToolRequest::new(params);
        if let Some(meta) = call.params.meta {
            request.extensions.insert(RequestMetaObject(MetaObject(meta)));
        }
        Some(ClientJsonRpcMessage::request(ClientRequest::CallToolRequest(request), call.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::time::Duration;
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

    /// Both ways of reading, of which the library's is the measure.
    #[test]
    fn a_call_is_read_as_the_library_reads_it() {
        let shapes = [
            json!({"name": "a"}),
            json!({"name": "a", "arguments": null}),
            json!({"name": "a\n\"é", "arguments": {"b": [1, 2.5, {"c": null}], "big": u64::MAX}}),
            json!({"name": "a", "_meta": {"progressToken": 7}, "arguments": {}}),
            json!({"name": "a", "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}),
        ];
        for params in shapes {
            for id in [json!(7), json!("seven"), json!(-1)] {
                let line =
                    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string();
                let quick = Call::read(line.as_bytes()).unwrap_or_else(|| panic!("{line}"));
                let usual: ClientJsonRpcMessage = serde_json::from_str(&line).unwrap();
                assert_eq!(format!("{quick:?}"), format!("{usual:?}"));
                assert_eq!(json!(quick), json!(usual));
            }
        }
    }

    #[test]
    fn whatever_is_more_than_a_plain_call_is_left_to_the_library() {
        for line in [
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"name": "a"}}),
            json!({"jsonrpc": "1.0", "id": 1, "method": "tools/call", "params": {"name": "a"}}),
            json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "a"}}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a", "requestState": "b"}}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a", "arguments": []}}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"arguments": {}}}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}),
            json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
        ] {
            assert!(Call::read(line.to_string().as_bytes()).is_none(), "{line}");
        }
        let twice = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#;
        assert!(Call::read(twice).is_none());
    }

    #[tokio::test]
    async fn what_is_no_message_is_told_where_somebody_may_wait_for_an_answer() {
        let (near, mut to) = tokio::io::duplex(1 << 16);
        let (from, far) = tokio::io::duplex(1 << 16);
        let mut wire = Wire::new(near, far);
        let mut answers = BufReader::new(from).lines();
        let listening = tokio::spawn(async move { wire.receive().await });
        for (line, id) in [
            ("", None),
            ("stray output", None),
            (r#"{"jsonrpc":"2.0","method":"somebody/elses","params":[1]}"#, None),
            (r#"{"jsonrpc":"2.0","id":5,"method":7}"#, Some(json!(5))),
            (r#"{"some":"thing"}"#, Some(Value::Null)),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, Some(Value::Null)),
        ] {
            to.write_all(format!("{line}\n").as_bytes()).await.unwrap();
            let Some(id) = id else { continue };
            let answer = tokio::time::timeout(Duration::from_secs(5), answers.next_line()).await;
            let answer: Value = serde_json::from_str(&answer.unwrap().unwrap().unwrap()).unwrap();
            assert_eq!(answer["error"]["code"], -32600, "{line}");
            assert_eq!(answer.get("id").unwrap_or(&Value::Null), &id, "{line}");
        }
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":6,"method":"a","params":{}1{}}}"#,
            "[".repeat(150),
            "]".repeat(150)
        );
        for (line, code, id) in [
            ("{bad json}", -32700, Value::Null),
            ("[1, 2", -32700, Value::Null),
            (deep.as_str(), -32600, json!(6)),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600, Value::Null),
            (r#"{"jsonrpc":"2.0","id":99999999999999999999,"method":"tools/list"}"#, -32600, Value::Null),
            (
                r#"{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"a"}}"#,
                -32600,
                Value::Null,
            ),
        ] {
            to.write_all(format!("{line}\n").as_bytes()).await.unwrap();
            let answer = tokio::time::timeout(Duration::from_secs(5), answers.next_line()).await;
            let answer: Value = serde_json::from_str(&answer.unwrap().unwrap().unwrap()).unwrap();
            assert_eq!(answer["error"]["code"], code, "{line}");
            assert_eq!(answer.get("id"), Some(&id), "{line}");
        }
        to.write_all(b"\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n").await.unwrap();
        let message = listening.await.unwrap();
        assert!(matches!(message, Some(ClientJsonRpcMessage::Request(_))), "{message:?}");
    }

    #[tokio::test]
    async fn the_last_message_needs_no_break_behind_it() {
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        for (text, messages) in [(format!("{ping}\n{ping}"), 2), (format!("{ping}\n{{\"jsonrpc\""), 1)] {
            let (near, mut to) = tokio::io::duplex(1 << 16);
            let (_from, far) = tokio::io::duplex(1 << 16);
            let mut wire = Wire::new(near, far);
            to.write_all(text.as_bytes()).await.unwrap();
            drop(to);
            for _ in 0..messages {
                assert!(matches!(wire.receive().await, Some(ClientJsonRpcMessage::Request(_))), "{text}");
            }
            assert!(wire.receive().await.is_none(), "{text}");
        }
    }
}
