//! How many are busy, and when none is.

use axum::body::{Body, Bytes, HttpBody};
use axum::http::Response;
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::watch;

/// A count that can be waited on.
#[derive(Debug, Clone)]
pub(crate) struct Busy(Arc<watch::Sender<usize>>);

/// One that is busy; dropped, it is not.
#[derive(Debug)]
pub(crate) struct BusyOne(Arc<watch::Sender<usize>>);

impl Default for Busy {
    fn default() -> Self {
        Self(Arc::new(watch::channel(0).0))
    }
}

impl Busy {
    /// Counts one in.
    pub fn one(&self) -> BusyOne {
        self.0.send_modify(|count| *count += 1);
        BusyOne(Arc::clone(&self.0))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        *self.0.borrow()
    }

    /// Resolves once there is none.
    pub async fn none(&self) {
        // The sender lives as long as `self`.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Drop for BusyOne {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// A body that keeps something until its end.
struct Keeping<K> {
    body: Body,
    kept: Option<K>,
}

impl<K: Unpin + Send + 'static> HttpBody for Keeping<K> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.kept = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The same answer, which keeps something until it was given whole.
pub(crate) fn keeping<K: Unpin + Send + 'static>(response: Response<Body>, kept: K) -> Response<Body> {
    response.map(|body| Body::new(Keeping { body, kept: Some(kept) }))
}
