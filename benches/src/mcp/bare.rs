//! The pool without anything around it, as a server over standard streams and over HTTP: what proxying costs before
//! anybody decides anything. Kiwi itself has no such way.

use anyhow::{Context, Result};
use kiwi_exec::{Confinement, HttpClient, Launcher};
use kiwi_mcp::stream::{Incoming, Outgoing, Read};
use kiwi_mcp::{Connection, Pool, Reach, Server, ServerName, Silent, Surroundings};
use kiwi_model::Space;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, ServerHandler};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::client::REVISION;

/// Serves until the client goes; over HTTP, at a port, until it is ended.
pub fn serve(kiwi: &Path, upstream: &Path, scratch: &Path, port: Option<u16>) -> Result<()> {
    let pool = Pool::new(Surroundings {
        launcher: Launcher::new(kiwi, scratch.join("bare")),
        http: Arc::new(HttpClient::new()),
        environment: Vec::new(),
        lookup: Arc::new(|_| None),
        search_path: std::env::var("PATH").unwrap_or_default(),
        project: scratch.to_owned(),
        confinement: Confinement::default(),
        tokens: scratch.join("tokens"),
        authorize: None,
        on_change: Arc::new(|_, _| {}),
    });
    let command = upstream.to_str().context("the upstream's path is not Unicode")?.to_owned();
    let reach = Reach::Stdio { command, args: Vec::new(), env: BTreeMap::new(), cwd: None };
    let server = Server::new(ServerName::parse("up")?, Space::User, reach);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let bare = Bare(Arc::new(pool.connect(&server).await?));
        match port {
            None => over_pipes(&bare).await,
            Some(port) => over_http(bare, port).await?,
        }
        pool.close().await;
        Ok(())
    })
}

/// Passes calls on.
#[derive(Clone)]
struct Bare(Arc<Connection>);

impl Bare {
    async fn ask(&self, params: Value, cancelled: impl Future<Output = ()>) -> Result<Value, String> {
        let asked = self.0.request("tools/call", params, Arc::new(Silent), cancelled);
        asked.await.map(|answer| answer.0).map_err(|error| error.to_string())
    }
}

/// Over Kiwi's own streams: a line in, a line out.
async fn over_pipes(bare: &Bare) {
    let (read, write) = rmcp::transport::io::stdio_pipes();
    let (mut incoming, outgoing) = (Incoming::new(read), Outgoing::new(write));
    while let Read::Line(line) = incoming.next().await {
        let Ok(mut message) = serde_json::from_slice::<Value>(line) else { continue };
        let mut part = |name: &str| message.get_mut(name).map(Value::take).unwrap_or_default();
        let (id, method, params) = (part("id"), part("method"), part("params"));
        let (bare, outgoing) = (bare.clone(), outgoing.clone());
        match method.as_str() {
            Some("initialize") => {
                let info = json!({"name": "bare", "version": "1"});
                let result =
                    json!({"protocolVersion": REVISION, "capabilities": {"tools": {}}, "serverInfo": info});
                drop(outgoing.send(&json!({"jsonrpc": "2.0", "id": id, "result": result})));
            }
            Some("tools/call") => drop(tokio::spawn(async move {
                let answer = match bare.ask(params, std::future::pending()).await {
                    Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                    Err(message) => {
                        json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": message}})
                    }
                };
                drop(outgoing.send(&answer).await);
            })),
            _ => {}
        }
    }
}

/// Over HTTP as Kiwi serves it: an answer is one piece, not a stream with one event.
async fn over_http(bare: Bare, port: u16) -> Result<()> {
    let mut config = StreamableHttpServerConfig::default();
    config.json_response = true;
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(bare.clone()), sessions, config);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
        // Small answers do not wait for each other.
        let _ = stream.set_nodelay(true);
    });
    Ok(axum::serve(listener, axum::Router::new().route_service("/mcp", service)).await?)
}

impl ServerHandler for Bare {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let failed = |error: String| ErrorData::internal_error(error, None);
        let params = json!({"name": request.name, "arguments": request.arguments});
        let answer = self.ask(params, context.ct.cancelled()).await.map_err(failed)?;
        let result: CallToolResult =
            serde_json::from_value(answer).map_err(|error| failed(error.to_string()))?;
        Ok(result.into())
    }
}
