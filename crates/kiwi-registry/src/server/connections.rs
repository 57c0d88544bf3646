//! The connections: a bounded number, none of which may do nothing for long.

use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Limits;

/// How long a lack of descriptors is waited on.
const PAUSE: Duration = Duration::from_millis(20);

/// When a connection last moved, and whether somebody works for it.
#[derive(Debug)]
pub(super) struct Pulse {
    since: Instant,
    last: AtomicU64,
    working: AtomicUsize,
}

impl Pulse {
    fn new() -> Self {
        Self { since: Instant::now(), last: AtomicU64::new(0), working: AtomicUsize::new(0) }
    }

    /// It moved.
    pub fn beat(&self) {
        self.last.store(self.now(), Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Resolves once it has not moved for that long, with nobody working for it: a client that does not take its answer.
    async fn stopped(&self, patience: Duration) {
        let patience = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        loop {
            tokio::time::sleep(Duration::from_millis((patience / 4).max(10))).await;
            let still = self.now().saturating_sub(self.last.load(Ordering::Relaxed));
            if self.working.load(Ordering::Acquire) == 0 && still > patience {
                return;
            }
        }
    }
}

/// Counts as work until it is dropped.
struct Working(Arc<Pulse>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.beat();
        self.0.working.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Accepts connections until `stop` resolves, then lets those that are busy end.
pub(super) async fn serve<F, A>(
    listener: TcpListener,
    limits: &Limits,
    stop: impl Future<Output = ()>,
    answer: A,
) where
    F: Future<Output = Response<Body>> + Send + 'static,
    A: Fn(Request<Body>, IpAddr) -> F + Clone + Send + Sync + 'static,
{
    let room = Arc::new(Semaphore::new(limits.connections));
    let (ending, ended) = watch::channel(false);
    let mut open = JoinSet::new();
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = async {
                let room = Arc::clone(&room).acquire_owned().await;
                (room, listener.accept().await)
            } => accepted,
            () = &mut stop => break,
        };
        while open.try_join_next().is_some() {}
        let (Ok(room), Ok((stream, remote))) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let (answer, ended, patience) = (answer.clone(), ended.clone(), limits.patience);
        open.spawn(async move {
            connection(TokioIo::new(stream), remote.ip(), answer, ended, patience).await;
            drop(room);
        });
    }
    drop(listener);
    ending.send_replace(true);
    let _ = tokio::time::timeout(limits.drain, async { while open.join_next().await.is_some() {} }).await;
    open.shutdown().await;
}

async fn connection<F, A>(
    stream: impl hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    remote: IpAddr,
    answer: A,
    mut ended: watch::Receiver<bool>,
    patience: Duration,
) where
    F: Future<Output = Response<Body>> + Send + 'static,
    A: Fn(Request<Body>, IpAddr) -> F + Send + Sync + 'static,
{
    let pulse = Arc::new(Pulse::new());
    let beating = Arc::clone(&pulse);
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        beating.working.fetch_add(1, Ordering::AcqRel);
        let working = Working(Arc::clone(&beating));
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Arc::clone(&beating));
        let answering = answer(request, remote);
        async move {
            let response = answering.await;
            drop(working);
            Ok::<_, Infallible>(response)
        }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(patience).max_buf_size(64 << 10);
    let mut serving = std::pin::pin!(builder.serve_connection(stream, service));
    let mut is_ending = false;
    loop {
        tokio::select! {
            _ = serving.as_mut() => return,
            () = pulse.stopped(patience * 2) => return,
            _ = ended.wait_for(|ended| *ended), if !is_ending => {
                is_ending = true;
                serving.as_mut().graceful_shutdown();
            }
        }
    }
}
