//! A small upstream MCP server: `echo`, as fast as can be, and what the conformance suite asks of a server that no
//! manifest can express. It speaks over standard streams, or with `--http PORT` over HTTP.
#![allow(deprecated, reason = "clients of older revisions are asked and told this way")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::needless_pass_by_value,
    reason = "a program of the tests: it fails by panicking"
)]

mod content;
mod questions;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, CompleteRequestParams,
    CompleteResult, ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ServerConfig, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
    UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, serve_server};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Made of JSON, as the suite writes it.
fn made<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("a value of the protocol")
}

/// A result of the protocol, which says that it is whole.
fn result<T: DeserializeOwned>(mut value: Value) -> T {
    value["resultType"] = json!("complete");
    made(value)
}

#[derive(Clone)]
struct Upstream;

impl ServerHandler for Upstream {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(made(json!({
            "tools": {"listChanged": true}, "prompts": {}, "resources": {"subscribe": true},
            "completions": {}, "logging": {},
        })));
        info.server_info = Implementation::new("upstream", "1.0.0");
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(content::tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name == "echo" {
            let said = request.arguments.as_ref().and_then(|it| it.get("message")).and_then(Value::as_str);
            return Ok(CallToolResult::success(vec![ContentBlock::text(said.unwrap_or_default())]).into());
        }
        if let Some(given) = content::result(&request.name) {
            return Ok(result::<CallToolResult>(given).into());
        }
        match request.name.as_ref() {
            "test_tool_with_logging" | "test_logging_tool" => {
                let told = ["Tool execution started", "Tool processing data", "Tool execution completed"];
                for (number, line) in told.into_iter().enumerate() {
                    if number > 0 {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                    let is_wanted = context.meta.log_level().is_some()
                        || context.peer.peer_info().is_some_and(|it| it.protocol_version.has_initialize());
                    if !is_wanted {
                        continue;
                    }
                    let message = made(json!({"level": "info", "logger": "upstream", "data": line}));
                    let _ = context.peer.notify_logging_message(message).await;
                }
                Ok(CallToolResult::success(vec![ContentBlock::text("Tool execution completed")]).into())
            }
            "test_tool_with_progress" => {
                for progress in [0, 50, 100] {
                    if let Some(token) = context.meta.get_progress_token() {
                        let step = made(json!({"progressToken": token, "progress": progress, "total": 100}));
                        let _ = context.peer.notify_progress(step).await;
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Ok(CallToolResult::success(vec![ContentBlock::text("Progress reported")]).into())
            }
            "test_missing_capability" => {
                let declared = context.client_capabilities().unwrap_or_default();
                if declared.sampling.is_none() {
                    let needed: ClientCapabilities = made(json!({"sampling": {}}));
                    return Err(ErrorData::missing_required_client_capability(needed));
                }
                Ok(CallToolResult::success(vec![ContentBlock::text("the client can sample")]).into())
            }
            "slow" => {
                let seconds =
                    request.arguments.as_ref().and_then(|it| it.get("seconds")).and_then(Value::as_f64);
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_secs_f64(seconds.unwrap_or(1.0))) => {}
                    () = context.ct.cancelled() => {}
                }
                Ok(CallToolResult::success(vec![ContentBlock::text("slept")]).into())
            }
            "test_streaming_elicitation" => {
                if let Some(token) = context.meta.get_progress_token() {
                    let _ = context
                        .peer
                        .notify_progress(made(json!({"progressToken": token, "progress": 1})))
                        .await;
                }
                questions::call(request, &context).await
            }
            _ => questions::call(request, &context).await,
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(content::prompts()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name == "test_input_required_result_prompt" {
            return questions::prompt(request, &context).await;
        }
        let arguments = request.arguments.unwrap_or_default();
        let prompt = content::prompt(&request.name, &arguments);
        let prompt = prompt.ok_or_else(|| ErrorData::invalid_params("there is no such prompt", None))?;
        Ok(result::<GetPromptResult>(prompt).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(content::resources()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(content::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let unknown =
            || ErrorData::resource_not_found("Resource not found", Some(json!({"uri": request.uri})));
        let contents = content::resource(&request.uri).ok_or_else(unknown)?;
        Ok(result::<ReadResourceResult>(json!({"contents": [contents]})).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let known = ["test", "testing", "tests", "paris", "park", "party"];
        let found: Vec<&str> =
            known.into_iter().filter(|it| it.starts_with(&request.argument.value)).collect();
        Ok(result(json!({"completion": {"values": found, "total": found.len(), "hasMore": false}})))
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() == Some("--http") {
        let port: u16 = words.next().and_then(|port| port.parse().ok()).unwrap_or(0);
        let service = StreamableHttpService::new(
            || Ok(Upstream),
            Arc::new(LocalSessionManager::default()),
            StreamableHttpServerConfig::default(),
        );
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.expect("a port");
        println!("http://{}/mcp", listener.local_addr().expect("an address"));
        let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
            // Small answers do not wait for each other.
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, axum::Router::new().route_service("/mcp", service)).await.expect("served");
    } else if let Ok(running) = serve_server(Upstream, rmcp::transport::io::stdio_pipes()).await {
        let _ = running.waiting().await;
    }
}
