//! A stream of events of an HTTP endpoint, listened to on its way to the protocol library.

use futures_core::Stream;
use reqwest::Response;
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::{Sse, SseStream};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::calls::Calls;
use super::heard::{Heard, Tapped};

/// The events of one response.
pub(super) struct Events {
    inner: Pin<Box<dyn Stream<Item = Result<Sse, SseError>> + Send>>,
    calls: Arc<Calls>,
}

impl Events {
    /// Listens to a response; an event that is longer ends it.
    pub fn new(response: Response, calls: Arc<Calls>, longest: usize) -> Self {
        let bytes = Bounded { inner: Box::pin(response.bytes_stream()), length: 0, line: 0, longest };
        Self { inner: Box::pin(SseStream::from_bytes_stream(bytes)), calls }
    }
}

impl Stream for Events {
    type Item = Result<Sse, SseError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(Ok(mut event)) = ready!(self.inner.as_mut().poll_next(context)) else {
            // An error ends the stream as its end does: the library resumes it where that can be done.
            return Poll::Ready(None);
        };
        let is_message = event.event.as_deref().is_none_or(|kind| kind.is_empty() || kind == "message");
        if is_message && let Some(data) = &event.data {
            match serde_json::from_str::<Heard>(data).map(|heard| heard.tap(&self.calls)) {
                Ok(Tapped::Pass) => {}
                // Dealt with, or no message at all. The event itself goes on: its number says where the stream can be
                // resumed.
                Ok(Tapped::Done) | Err(_) => event.data = None,
            }
        }
        Poll::Ready(Some(Ok(event)))
    }
}

type Chunks<B> = Pin<Box<dyn Stream<Item = Result<B, reqwest::Error>> + Send>>;

/// Bytes of events, none of which is too long.
struct Bounded<B> {
    inner: Chunks<B>,
    /// How long the event is so far.
    length: usize,
    /// How long its last line is so far.
    line: usize,
    longest: usize,
}

impl<B: AsRef<[u8]>> Stream for Bounded<B> {
    type Item = Result<B, io::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let chunk = match ready!(self.inner.as_mut().poll_next(context)) {
            Some(Ok(chunk)) => chunk,
            Some(Err(error)) => return Poll::Ready(Some(Err(io::Error::other(error)))),
            None => return Poll::Ready(None),
        };
        for byte in chunk.as_ref() {
            self.length += 1;
            match byte {
                b'\n' | b'\r' if self.line == 0 => self.length = 0,
                b'\n' | b'\r' => self.line = 0,
                _ => self.line += 1,
            }
            if self.length > self.longest {
                return Poll::Ready(Some(Err(io::Error::other("an event is too long"))));
            }
        }
        Poll::Ready(Some(Ok(chunk)))
    }
}
