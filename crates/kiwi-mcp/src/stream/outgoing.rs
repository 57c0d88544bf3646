//! Writing lines.

use serde::Serialize;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::JoinHandle;

/// A stream of lines, for everybody who writes to it. Nothing is in it once it was closed.
#[derive(Debug)]
pub struct Outgoing<W>(Arc<Mutex<Option<W>>>);

impl<W> Clone for Outgoing<W> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<W: AsyncWrite + Unpin + Send + 'static> Outgoing<W> {
    /// Lines into a stream.
    pub fn new(write: W) -> Self {
        Self(Arc::new(Mutex::new(Some(write))))
    }

    /// Writes a message as one line: at once where the stream takes it, and to its end whether or not anybody waits for
    /// that; half a line would spoil the next.
    pub fn send<M: Serialize>(&self, message: &M) -> impl Future<Output = io::Result<()>> + Send + use<W, M> {
        let begun = serde_json::to_vec(message).map_err(io::Error::other).and_then(|mut line| {
            line.push(b'\n');
            self.begin(line)
        });
        async move {
            match begun? {
                Some(rest) => rest.await.map_err(io::Error::other)?,
                None => Ok(()),
            }
        }
    }

    /// Closes the stream, unless somebody is in the middle of a line; then it closes with them.
    pub fn close(&self) {
        if let Ok(mut write) = self.0.try_lock() {
            drop(write.take());
        }
    }

    /// Writes what can be written now; what is left is seen to by the task that is returned.
    fn begin(&self, line: Vec<u8>) -> io::Result<Option<JoinHandle<io::Result<()>>>> {
        let (guard, written) = match Arc::clone(&self.0).try_lock_owned() {
            Ok(mut guard) => match at_once(&mut guard, &line)? {
                (written, Poll::Ready(())) if written == line.len() => return Ok(None),
                (written, _) => (Some(guard), written),
            },
            // Somebody else is in the middle of theirs.
            Err(_) => (None, 0),
        };
        let shared = Arc::clone(&self.0);
        Ok(Some(tokio::spawn(async move {
            let mut guard: OwnedMutexGuard<Option<W>> = match guard {
                Some(guard) => guard,
                None => shared.lock_owned().await,
            };
            let write = guard.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            write.write_all(line.get(written..).unwrap_or_default()).await?;
            write.flush().await
        })))
    }
}

/// Writes as much as the stream takes without waiting; tells how much that was, and whether it is out.
fn at_once<W: AsyncWrite + Unpin>(write: &mut Option<W>, line: &[u8]) -> io::Result<(usize, Poll<()>)> {
    let mut write = Pin::new(write.as_mut().ok_or(io::ErrorKind::NotConnected)?);
    let mut context = Context::from_waker(Waker::noop());
    let Poll::Ready(written) = write.as_mut().poll_write(&mut context, line) else {
        return Ok((0, Poll::Pending));
    };
    let written = written?;
    let is_out = write.poll_flush(&mut context)?;
    Ok((written, is_out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::io::AsyncReadExt as _;

    fn outgoing(capacity: usize) -> (Outgoing<tokio::io::DuplexStream>, tokio::io::DuplexStream) {
        let (near, far) = tokio::io::duplex(capacity);
        (Outgoing::new(near), far)
    }

    #[tokio::test]
    async fn a_line_is_written_whole_even_if_nobody_waits_for_it() {
        let (outgoing, mut far) = outgoing(4);
        for message in ["a long line", "another one", "b"] {
            drop(outgoing.send(&message));
        }
        let mut heard = [0; 32];
        far.read_exact(&mut heard).await.unwrap();
        let heard = std::str::from_utf8(&heard).unwrap();
        assert_eq!(heard, "\"a long line\"\n\"another one\"\n\"b\"\n");
    }

    #[tokio::test]
    async fn a_line_is_out_before_anybody_waits_where_there_is_room() {
        let (outgoing, mut far) = outgoing(64);
        let sent = outgoing.send(&1);
        let mut heard = [0; 2];
        tokio::time::timeout(Duration::from_secs(5), far.read_exact(&mut heard)).await.unwrap().unwrap();
        sent.await.unwrap();
    }

    #[tokio::test]
    async fn what_cannot_be_written_is_told() {
        let (outgoing, far) = outgoing(64);
        outgoing.send(&1).await.unwrap();
        drop(far);
        assert!(outgoing.send(&2).await.is_err());
        outgoing.close();
        assert_eq!(outgoing.send(&3).await.unwrap_err().kind(), io::ErrorKind::NotConnected);
    }
}
