//! Bodies: how long they may be, how slowly they may come, what they hold.

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, Request};
use hyper::body::{Frame, SizeHint};
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::connections::Pulse;
use crate::error::RegistryError;
use crate::store::{BlobBytes, Spool};

/// Who sends more slowly is cut off.
const SLOWEST: u64 = 16 << 10;

/// A body that is arriving.
struct Arriving {
    body: Body,
    most: u64,
    received: u64,
    since: Instant,
    patience: Duration,
}

impl Arriving {
    fn new(request: Request<Body>, most: u64, patience: Duration) -> Result<Self, RegistryError> {
        let headers = request.headers();
        let announced = headers.get(CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse::<u64>().ok());
        if announced.is_some_and(|length| length > most) {
            return Err(RegistryError::TooLarge { most });
        }
        let is_plain = headers.get_all(CONTENT_ENCODING).iter().all(|it| it == "identity");
        if !is_plain {
            return Err(RegistryError::MediaType { wanted: "sent as it is" });
        }
        Ok(Self { body: request.into_body(), most, received: 0, since: Instant::now(), patience })
    }

    /// The next bytes; nothing at the end. The deadline moves with what has come.
    async fn next(&mut self) -> Result<Option<Bytes>, RegistryError> {
        let earned = Duration::from_millis(self.received.saturating_mul(1000) / SLOWEST);
        let deadline = self.since + self.patience + earned;
        let cut = || RegistryError::bad("the request did not arrive whole");
        loop {
            let frame = std::future::poll_fn(|context| Pin::new(&mut self.body).poll_frame(context));
            let frame = tokio::time::timeout_at(deadline, frame).await.map_err(|_| RegistryError::TooSlow)?;
            let Some(frame) = frame else { return Ok(None) };
            let Ok(bytes) = frame.map_err(|_| cut())?.into_data() else { continue };
            self.received = self.received.saturating_add(bytes.len() as u64);
            if self.received > self.most {
                return Err(RegistryError::TooLarge { most: self.most });
            }
            return Ok(Some(bytes));
        }
    }
}

/// Reads a body as JSON.
pub(super) async fn json<T: DeserializeOwned>(
    request: Request<Body>,
    most: u64,
    patience: Duration,
) -> Result<T, RegistryError> {
    if !is_kind(request.headers(), "application/json") {
        return Err(RegistryError::MediaType { wanted: "`application/json`" });
    }
    let mut arriving = Arriving::new(request, most, patience)?;
    let mut text = Vec::new();
    while let Some(bytes) = arriving.next().await? {
        text.extend_from_slice(&bytes);
    }
    serde_json::from_slice(&text).map_err(|error| match error.classify() {
        Category::Data => RegistryError::unfit(format!("the body does not fit: {error}")),
        _ => RegistryError::bad(format!("the body is no JSON: {error}")),
    })
}

/// Reads a body into a spool.
pub(super) async fn bytes(
    request: Request<Body>,
    most: u64,
    patience: Duration,
    spool: &mut Spool,
) -> Result<(), RegistryError> {
    let headers = request.headers();
    if headers.contains_key(CONTENT_TYPE) && !is_kind(headers, "application/octet-stream") {
        return Err(RegistryError::MediaType { wanted: "`application/octet-stream`" });
    }
    let mut arriving = Arriving::new(request, most, patience)?;
    while let Some(bytes) = arriving.next().await? {
        spool.write(&bytes).await?;
    }
    Ok(())
}

fn is_kind(headers: &HeaderMap, wanted: &str) -> bool {
    let mut kinds = headers.get_all(CONTENT_TYPE).iter();
    let one = kinds.next().and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = one.split(';').next().unwrap_or_default().trim();
    kinds.next().is_none() && kind.eq_ignore_ascii_case(wanted)
}

/// A blob on its way out.
struct Pieces {
    from: mpsc::Receiver<Result<Bytes, RegistryError>>,
    left: u64,
    pulse: Option<Arc<Pulse>>,
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = RegistryError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, RegistryError>>> {
        let next = std::task::ready!(self.from.poll_recv(context));
        if let Some(pulse) = &self.pulse {
            pulse.beat();
        }
        if let Some(Ok(bytes)) = &next {
            self.left = self.left.saturating_sub(bytes.len() as u64);
        }
        Poll::Ready(next.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// A body of a blob's bytes, read as they are taken.
pub(super) fn stream(mut bytes: BlobBytes, size: u64, pulse: Option<Arc<Pulse>>) -> Body {
    let (to, from) = mpsc::channel(2);
    tokio::spawn(async move {
        loop {
            let piece = match bytes.next().await {
                Ok(None) => return,
                Ok(Some(piece)) => Ok(Bytes::from(piece)),
                Err(error) => Err(error),
            };
            // Nobody takes it any more.
            if to.send(piece).await.is_err() {
                return;
            }
        }
    });
    Body::new(Pieces { from, left: size, pulse })
}
