//! The short way of a request to a process: written by whoever makes it, and answered by whoever reads the answer.
//!
//! The protocol library greets a server, subscribes, and answers its questions. A request of ours needs nothing of that:
//! its line goes out at once, and its answer goes straight to the caller ([`super::calls`]).

use rmcp::model::RequestMetaObject;
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Map, Value};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Mutex, OwnedMutexGuard};

/// How long it may take to tell a server that nobody waits any more.
pub(super) const FAREWELL: Duration = Duration::from_secs(5);

/// What a process reads, for everybody who writes to it. Nothing is in it when the connection was closed.
pub(super) type Pipe<W> = Arc<Mutex<Option<W>>>;

/// The way to one process.
pub(super) struct Lane<W>(Pipe<W>);

impl<W> Clone for Lane<W> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<W: AsyncWrite + Unpin + Send + 'static> Lane<W> {
    pub const fn new(pipe: Pipe<W>) -> Self {
        Self(pipe)
    }

    /// Writes a line. It is written to its end, whatever becomes of whoever wanted it: half a line would spoil the next.
    pub async fn send(&self, line: Vec<u8>) -> io::Result<()> {
        let (guard, written) = match Arc::clone(&self.0).try_lock_owned() {
            Ok(mut guard) => match at_once(&mut guard, &line)? {
                written if written == line.len() => return Ok(()),
                written => (Some(guard), written),
            },
            // Somebody else is in the middle of theirs.
            Err(_) => (None, 0),
        };
        let pipe = Arc::clone(&self.0);
        let rest = tokio::spawn(async move {
            let mut guard: OwnedMutexGuard<Option<W>> = match guard {
                Some(guard) => guard,
                None => pipe.lock_owned().await,
            };
            let pipe = guard.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            pipe.write_all(line.get(written..).unwrap_or_default()).await?;
            pipe.flush().await
        });
        rest.await.map_err(io::Error::other)?
    }

    /// Tells the server that nobody waits for the answer to a request any more.
    pub fn withdraw(&self, id: i64) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let params = serde_json::json!({"requestId": id, "reason": "nobody waits for it any more"});
        let message =
            serde_json::json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        let lane = self.clone();
        runtime.spawn(async move {
            let _ = tokio::time::timeout(FAREWELL, lane.send(format!("{message}\n").into_bytes())).await;
        });
    }
}

/// Writes as much as the pipe takes without waiting.
fn at_once<W: AsyncWrite + Unpin>(pipe: &mut Option<W>, line: &[u8]) -> io::Result<usize> {
    let pipe = pipe.as_mut().ok_or(io::ErrorKind::NotConnected)?;
    match Pin::new(pipe).poll_write(&mut Context::from_waker(Waker::noop()), line) {
        Poll::Ready(written) => written,
        Poll::Pending => Ok(0),
    }
}

/// A request as one line.
pub(super) fn line(id: i64, method: &str, params: &Value, meta: &RequestMetaObject) -> io::Result<Vec<u8>> {
    let params = Params { given: params.as_object(), meta };
    let mut line = serde_json::to_vec(&Message { jsonrpc: "2.0", id, method, params })?;
    line.push(b'\n');
    Ok(line)
}

#[derive(serde::Serialize)]
struct Message<'a> {
    jsonrpc: &'static str,
    id: i64,
    method: &'a str,
    params: Params<'a>,
}

/// What is asked, with an envelope of ours in place of any other.
struct Params<'a> {
    given: Option<&'a Map<String, Value>>,
    meta: &'a RequestMetaObject,
}

impl Serialize for Params<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.given.into_iter().flatten().filter(|(name, _)| *name != "_meta") {
            map.serialize_entry(name, value)?;
        }
        map.serialize_entry("_meta", self.meta)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt as _;

    fn lane(capacity: usize) -> (Lane<tokio::io::DuplexStream>, tokio::io::DuplexStream) {
        let (near, far) = tokio::io::duplex(capacity);
        (Lane::new(Arc::new(Mutex::new(Some(near)))), far)
    }

    #[tokio::test]
    async fn a_line_is_written_whole_even_if_nobody_waits_for_it() {
        let (lane, mut far) = lane(4);
        for line in ["a long line\n", "another one\n", "b\n"] {
            let sent = lane.send(line.into());
            assert!(tokio::time::timeout(Duration::from_millis(10), sent).await.is_err(), "{line}");
        }
        let mut heard = [0; 26];
        far.read_exact(&mut heard).await.unwrap();
        assert_eq!(std::str::from_utf8(&heard).unwrap(), "a long line\nanother one\nb\n");
    }

    #[tokio::test]
    async fn what_cannot_be_written_is_told() {
        let (lane, far) = lane(64);
        lane.send("a\n".into()).await.unwrap();
        drop(far);
        assert!(lane.send("b\n".into()).await.is_err());
        *lane.0.lock().await = None;
        assert_eq!(lane.send("c\n".into()).await.unwrap_err().kind(), io::ErrorKind::NotConnected);
    }

    #[test]
    fn a_request_has_our_envelope_and_no_other() {
        let mut meta = RequestMetaObject::default();
        meta.0.0.insert("progressToken".into(), 7.into());
        let read = |params: Value| {
            let line = line(7, "tools/call", &params, &meta).unwrap();
            assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1));
            serde_json::from_slice::<Value>(&line).unwrap()
        };
        let message = read(serde_json::json!({"name": "a\nb", "_meta": {"theirs": 1}}));
        let params = serde_json::json!({"name": "a\nb", "_meta": {"progressToken": 7}});
        let expected =
            serde_json::json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
        assert_eq!(message, expected);
        assert_eq!(read(Value::Null).pointer("/params/_meta/progressToken"), Some(&Value::from(7)));
    }
}
