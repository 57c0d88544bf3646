//! The connections: a bounded number, of which those that do nothing make room for those that want something.

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::HttpOptions;
use super::busy::{Busy, keeping};

/// More at once is no use to anybody.
const MOST: usize = 2048;
/// Descriptors that are left to everything else.
const SPARE: usize = 128;
/// How long a full table, or a lack of descriptors, is waited on.
const PAUSE: Duration = Duration::from_millis(20);

/// The other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Remote(pub SocketAddr);

/// One connection.
struct Connection {
    busy: Busy,
    /// Dropped or sent to, it ends the connection.
    end: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

/// Those that are open, oldest first.
#[derive(Default)]
pub(crate) struct Pool {
    open: VecDeque<Connection>,
}

/// As many as this process may have descriptors for.
pub(crate) fn most() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(MOST + SPARE);
    limit.saturating_sub(SPARE).clamp(16, MOST)
}

/// Accepts connections until `stop` resolves.
pub(crate) async fn accept(
    listener: TcpListener,
    router: Router,
    options: &HttpOptions,
    stop: impl Future<Output = ()>,
) -> Pool {
    let mut pool = Pool::default();
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => return pool,
        };
        let Ok((stream, remote)) = accepted else {
            // No descriptors: those that do nothing give theirs.
            pool.make_room(pool.open.len());
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        if !pool.make_room(options.most_connections) {
            // Everybody here is busy; who comes now is told so by the closed door.
            continue;
        }
        let _ = stream.set_nodelay(true);
        pool.open.push_back(connect(TokioIo::new(stream), remote, router.clone(), options.patience));
    }
}

fn connect(
    stream: impl hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    remote: SocketAddr,
    router: Router,
    patience: Duration,
) -> Connection {
    let busy = Busy::default();
    let (end, mut ended) = watch::channel(false);
    let counted = busy.clone();
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let (mut router, one) = (router.clone(), counted.one());
        async move {
            let mut request: Request = request.map(Body::new);
            request.extensions_mut().insert(Remote(remote));
            let response: Result<Response<Body>, Infallible> = tower_call(&mut router, request).await;
            response.map(|response| keeping(response, one))
        }
    });
    let task = tokio::spawn(async move {
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(patience).max_buf_size(64 << 10);
        let mut serving = std::pin::pin!(builder.serve_connection(stream, service));
        tokio::select! {
            _ = serving.as_mut() => {}
            _ = ended.wait_for(|ended| *ended) => {}
        }
    });
    Connection { busy, end, task }
}

/// A router is always ready.
async fn tower_call(router: &mut Router, request: Request) -> Result<Response<Body>, Infallible> {
    use hyper::service::Service as _;
    use hyper_util::service::TowerToHyperService;
    TowerToHyperService::new(router.clone()).call(request).await
}

impl Pool {
    /// Whether one more fits, once those that have gone, or do nothing, have made room.
    fn make_room(&mut self, most: usize) -> bool {
        // Those that are busy go to the end, so that nobody is looked at again for every newcomer.
        for _ in 0..self.open.len() {
            if self.open.len() < most {
                break;
            }
            let Some(oldest) = self.open.pop_front() else { break };
            if oldest.task.is_finished() {
                continue;
            }
            if oldest.busy.count() == 0 {
                oldest.end.send_replace(true);
            } else {
                self.open.push_back(oldest);
            }
        }
        self.open.len() < most
    }

    /// Ends them all.
    pub async fn close(self) {
        for connection in self.open {
            connection.end.send_replace(true);
            let _ = tokio::time::timeout(Duration::from_secs(1), connection.task).await;
        }
    }
}
