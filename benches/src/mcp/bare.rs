//! The pool without anything around it, as a server over standard streams: what proxying costs before anybody decides
//! anything. Kiwi itself has no such way.

use anyhow::{Context, Result};
use kiwi_exec::{Confinement, HttpClient, Launcher};
use kiwi_mcp::{Connection, Pool, Reach, Server, ServerName, Silent, Surroundings};
use kiwi_model::Space;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer, serve_server};
use rmcp::{ErrorData, ServerHandler};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

struct Bare {
    connection: Connection,
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
        let params = json!({"name": request.name, "arguments": request.arguments});
        let failed = |error: String| ErrorData::internal_error(error, None);
        let asked = self.connection.request("tools/call", params, Arc::new(Silent), context.ct.cancelled());
        let answer = asked.await.map_err(|error| failed(error.to_string()))?;
        let result: CallToolResult =
            serde_json::from_value(answer.0).map_err(|error| failed(error.to_string()))?;
        Ok(result.into())
    }
}

/// Serves until the client goes.
pub fn serve(kiwi: &Path, upstream: &Path, scratch: &Path) -> Result<()> {
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
        let connection = pool.connect(&server).await?;
        let running = serve_server(Bare { connection }, rmcp::transport::io::stdio_pipes()).await?;
        running.waiting().await?;
        pool.close().await;
        Ok(())
    })
}
