//! The endpoint over HTTP: `/mcp` and `/mcp/direct`, for every revision of the protocol.

mod bearer;
mod busy;
mod connections;
mod guard;
mod names;

pub use bearer::Bearer;
pub(crate) use guard::Identity;

use axum::Router;
use axum::routing::get;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

use self::guard::Guard;
use self::names::Names;
use crate::error::ServerError;
use crate::face::{Face, Shape};
use crate::server::Server;

/// How the endpoint behaves.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Where it listens.
    pub at: SocketAddr,
    /// What clients have to show; needed where others than this machine can reach it.
    pub bearer: Option<Bearer>,
    /// Further names under which it may be called: `Host` values, with or without a port.
    pub hosts: Vec<String>,
    /// Pages that may call it: `Origin` values.
    pub origins: Vec<String>,
    /// The longest request.
    pub most_bytes: usize,
    /// How long a request may take to arrive, headers and body each.
    pub patience: Duration,
    /// Requests that are worked on at once.
    pub most_requests: usize,
    /// Connections that are open at once.
    pub most_connections: usize,
    /// How long calls may go on once the end was asked for.
    pub drain: Duration,
}

impl HttpOptions {
    /// The usual ones.
    pub fn at(at: SocketAddr) -> Self {
        Self {
            at,
            bearer: None,
            hosts: Vec::new(),
            origins: Vec::new(),
            most_bytes: 4 << 20,
            patience: Duration::from_secs(10),
            most_requests: 512,
            most_connections: connections::most(),
            drain: Duration::from_secs(10),
        }
    }
}

/// An endpoint that listens.
pub struct Http {
    server: Arc<Server>,
    options: HttpOptions,
    listener: TcpListener,
    at: SocketAddr,
}

impl Http {
    /// Listens, unless anybody could call.
    pub async fn bind(server: Arc<Server>, options: HttpOptions) -> Result<Self, ServerError> {
        let at = options.at;
        if !at.ip().is_loopback() && options.bearer.is_none() {
            return Err(ServerError::Open { at });
        }
        let failed = |error: std::io::Error| ServerError::Listen { at, problem: error.to_string() };
        let listener = TcpListener::bind(at).await.map_err(failed)?;
        let at = listener.local_addr().map_err(failed)?;
        Ok(Self { server, options, listener, at })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.at
    }

    /// Serves until `stop` resolves, then lets running calls end, and ends those that do not.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        let Self { server, options, listener, at } = self;
        let tending = tokio::spawn(Arc::clone(&server).tend());
        // Read before the first client asks.
        drop(tokio::spawn({
            let server = Arc::clone(&server);
            async move { drop(server.board.current().await) }
        }));
        let config = config(&options);
        let ending = config.cancellation_token.clone();
        let names = Names::new(at, &options.hosts, &options.origins);
        let guard = Arc::new(Guard::new(&options, names, at));
        let router = router(&server, &config, &guard);
        let pool = connections::accept(listener, router, &options, stop).await;
        guard.close();
        let patience = options.drain;
        let _ = tokio::time::timeout(patience, async {
            server.drain(patience, Duration::from_secs(5)).await;
            guard.idle().await;
        })
        .await;
        server.drain(Duration::ZERO, Duration::from_secs(5)).await;
        ending.cancel();
        pool.close().await;
        tending.abort();
    }
}

/// The rules of the protocol library. `Host` and `Origin` were looked at before, on every path.
fn config(options: &HttpOptions) -> StreamableHttpServerConfig {
    let mut config = StreamableHttpServerConfig::default().disable_allowed_hosts().disable_allowed_origins();
    config.max_request_body_bytes = options.most_bytes;
    config.json_response = true;
    config
}

fn router(server: &Arc<Server>, config: &StreamableHttpServerConfig, guard: &Arc<Guard>) -> Router {
    let face = |shape: Shape, sessions: &Arc<LocalSessionManager>| {
        let server = Arc::clone(server);
        let make = move || Ok(Face::new(Arc::clone(&server), shape));
        StreamableHttpService::new(make, Arc::clone(sessions), config.clone())
    };
    let metadata = || {
        let guard = Arc::clone(guard);
        get(move |request: axum::extract::Request| async move { guard.metadata(&request) })
    };
    Router::new()
        .route_service("/mcp", face(Shape::Meta, &guard.meta_sessions))
        .route_service("/mcp/direct", face(Shape::Direct, &guard.direct_sessions))
        .route("/.well-known/oauth-protected-resource", metadata())
        .route("/.well-known/oauth-protected-resource/mcp", metadata())
        .route("/.well-known/oauth-protected-resource/mcp/direct", metadata())
        .layer(axum::middleware::from_fn_with_state(Arc::clone(guard), guard::pass))
}
