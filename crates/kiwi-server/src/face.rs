//! What a client talks to.

use kiwi_gate::{Caller, Session};
use kiwi_model::Digest;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CustomRequest,
    CustomResult, GetPromptRequestParams, GetPromptResponse, Implementation, InitializeRequestParams,
    InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    LoggingLevel, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ResourceUpdatedNotificationParam, ServerCapabilities, ServerConfig, SetLevelRequestMethod,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, Peer, RoleServer, ServerHandler};
use serde_json::{Map, json};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

use crate::answer;
use crate::client::{Client, capabilities, is_modern};
use crate::direct::{self, Verb};
use crate::http::Identity;
use crate::meta;
use crate::params;
use crate::server::Server;

/// Which face a client sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Four tools in front of everything.
    Meta,
    /// Every tool under its own name.
    Direct,
}

/// One face: of one connection, or of one request where there is no connection.
pub(crate) struct Face {
    server: Arc<Server>,
    shape: Shape,
    /// The connection's own session, where it has one.
    own: OnceLock<Session>,
    level: Mutex<LoggingLevel>,
    /// What the connection's client follows.
    followed: Arc<Mutex<HashSet<String>>>,
}

impl Face {
    /// A face for requests that stand for themselves until a client says otherwise.
    pub fn new(server: Arc<Server>, shape: Shape) -> Self {
        Self {
            server,
            shape,
            own: OnceLock::new(),
            level: Mutex::new(LoggingLevel::Debug),
            followed: Arc::default(),
        }
    }

    /// A face for one connection.
    pub fn connected(server: Arc<Server>, shape: Shape) -> Self {
        let face = Self::new(server, shape);
        face.own.get_or_init(Session::start);
        face
    }

    fn client(&self, context: &RequestContext<RoleServer>) -> Client {
        let name = context.client_info().map(|info| info.name).unwrap_or_default();
        let is_modern = is_modern(context);
        let session = self.own.get().copied().unwrap_or_else(|| {
            let parts = context.extensions.get::<axum::http::request::Parts>();
            let who = parts.and_then(|parts| parts.extensions.get::<Identity>());
            let who = who.map_or("nobody", |who| who.0.as_str());
            self.server.sessions.of(&format!("{who} {name}"))
        });
        Client {
            caller: Caller::mcp(&name),
            session,
            capabilities: capabilities(context.client_capabilities().as_ref()),
            is_modern,
            log_level: if is_modern {
                context.meta.log_level()
            } else {
                Some(*self.level.lock().unwrap_or_else(PoisonError::into_inner))
            },
        }
    }

    fn is_direct(&self) -> bool {
        self.shape == Shape::Direct
    }

    /// Whether a method of the protocol is served here, to clients of the newest revision or of older ones.
    fn serves(&self, method: &str, is_modern: bool) -> bool {
        match method {
            "initialize" => !is_modern,
            "subscriptions/listen" => is_modern,
            "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => {
                self.is_direct() && !is_modern
            }
            "prompts/get" | "resources/read" | "completion/complete" => self.is_direct(),
            _ => true,
        }
    }

    /// Tells of every change of what this face shows.
    fn changes(&self) -> watch::Receiver<Option<Digest>> {
        if self.is_direct() { self.server.shelf.changes() } else { self.server.board.changes() }
    }

    /// Tells a connected client of changes for as long as it is there.
    fn tell_changes(&self, peer: Peer<RoleServer>) {
        let is_direct = self.is_direct();
        let mut changes = self.changes();
        tokio::spawn(async move {
            while changes.changed().await.is_ok() {
                let mut told = peer.notify_tool_list_changed().await.is_ok();
                if is_direct {
                    told = peer.notify_prompt_list_changed().await.is_ok() && told;
                    told = peer.notify_resource_list_changed().await.is_ok() && told;
                }
                if !told || peer.is_transport_closed() {
                    break;
                }
            }
        });
    }
}

impl Face {
    /// Tells a connected client of changes to what it follows, for as long as it is there.
    fn tell_updates(&self, peer: Peer<RoleServer>) {
        let mut updates = self.server.kernel.upstreams().updates();
        let followed = Arc::downgrade(&self.followed);
        tokio::spawn(async move {
            loop {
                let uri = match updates.recv().await {
                    Ok(uri) => uri,
                    Err(RecvError::Lagged(_)) => continue,
                    Err(RecvError::Closed) => break,
                };
                let Some(followed) = followed.upgrade() else { break };
                let is_followed = followed.lock().unwrap_or_else(PoisonError::into_inner).contains(&uri);
                drop(followed);
                if is_followed
                    && peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.is_err()
                {
                    break;
                }
            }
        });
    }
}

// The library makes one future of all that a client can ask and moves it around; so what is long is boxed.
impl ServerHandler for Face {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = json!({"tools": {"listChanged": true}});
        if self.is_direct() {
            capabilities = json!({
                "tools": {"listChanged": true}, "prompts": {"listChanged": true},
                "resources": {"listChanged": true, "subscribe": true}, "completions": {}, "logging": {},
            });
        }
        let capabilities: ServerCapabilities = serde_json::from_value(capabilities).unwrap_or_default();
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new("kiwi", env!("CARGO_PKG_VERSION"));
        info.server_info.title = Some("Kiwi".to_owned());
        info.instructions = Some(match self.shape {
            Shape::Meta => "search finds tools, directives and knowledge; load shows one whole; execute runs it through policy, \
                approval and audit; help says what to do when you do not get on."
                .to_owned(),
            Shape::Direct => "Every tool here runs through policy, approval and audit. A refusal says why and what to do."
                .to_owned(),
        });
        info
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        self.own.get_or_init(Session::start);
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if self.is_direct() {
            self.tell_updates(context.peer.clone());
        }
        self.tell_changes(context.peer);
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let (page, next) = if self.is_direct() {
            direct::page(&self.server.shelf.current().await.tools, cursor.as_deref())?
        } else {
            direct::page(&self.server.board.current().await.tools, cursor.as_deref())?
        };
        let mut result = ListToolsResult::with_all_items(page);
        result.next_cursor = next;
        Ok(result)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let find = |tools: &[Tool]| tools.iter().find(|tool| tool.name == name).cloned();
        if self.is_direct() {
            find(&self.server.shelf.known()?.tools)
        } else {
            find(&self.server.board.known()?.tools)
        }
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let client = self.client(&context);
        match self.shape {
            Shape::Meta => Box::pin(meta::call(&self.server, &client, request, &context)).await,
            Shape::Direct => Box::pin(direct::call(&self.server, &client, request, &context)).await,
        }
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let all = match self.shape {
            Shape::Meta => Vec::new(),
            Shape::Direct => Box::pin(direct::prompts(&self.server)).await,
        };
        let (page, next) = direct::page(&all, request.and_then(|it| it.cursor).as_deref())?;
        let mut result = ListPromptsResult::with_all_items(page);
        result.next_cursor = next;
        Ok(result)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if !self.is_direct() {
            return Err(ErrorData::method_not_found::<rmcp::model::GetPromptRequestMethod>());
        }
        Box::pin(direct::get_prompt(&self.server, &self.client(&context), request, &context)).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let all = match self.shape {
            Shape::Meta => Vec::new(),
            Shape::Direct => Box::pin(direct::resources(&self.server)).await,
        };
        let (page, next) = direct::page(&all, request.and_then(|it| it.cursor).as_deref())?;
        let mut result = ListResourcesResult::with_all_items(page);
        result.next_cursor = next;
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let all = match self.shape {
            Shape::Meta => Vec::new(),
            Shape::Direct => Box::pin(direct::templates(&self.server)).await,
        };
        let (page, next) = direct::page(&all, request.and_then(|it| it.cursor).as_deref())?;
        let mut result = ListResourceTemplatesResult::with_all_items(page);
        result.next_cursor = next;
        Ok(result)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if !self.is_direct() {
            return Err(ErrorData::method_not_found::<rmcp::model::ReadResourceRequestMethod>());
        }
        Box::pin(direct::read_resource(&self.server, &self.client(&context), request, &context)).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        if !self.is_direct() {
            return Err(ErrorData::method_not_found::<rmcp::model::CompleteRequestMethod>());
        }
        Box::pin(direct::complete(&self.server, &self.client(&context), request)).await
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if !self.is_direct() || is_modern(&context) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = request.level;
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Box::pin(self.follow(&request.uri, Verb::Subscribe, &context)).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Box::pin(self.follow(&request.uri, Verb::Unsubscribe, &context)).await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, params, .. } = request;
        let is_served = self.serves(&method, is_modern(&context));
        Err(params::refused(&method, params.as_ref(), is_served))
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changes();
        let mut updates = self.server.kernel.upstreams().updates();
        let sink = context.sink().clone();
        for uri in context.accepted().resource_subscriptions.iter().flatten() {
            // What cannot be followed now is told of by its list.
            let _ = self.follow(uri, Verb::Subscribe, context.request_context()).await;
        }
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                // It refuses by itself what this client did not ask for.
                Ok(uri) = updates.recv() => drop(sink.notify_resource_updated(uri).await),
                told = changes.changed() => {
                    if told.is_err() {
                        return Ok(());
                    }
                    // Each of them refuses by itself what this client did not ask for.
                    let _ = sink.notify_tool_list_changed().await;
                    let _ = sink.notify_prompt_list_changed().await;
                    let _ = sink.notify_resource_list_changed().await;
                }
            }
        }
    }
}

impl Face {
    /// Begins or ends to follow a resource. Knowledge is followed by the list; others by their server.
    async fn follow(
        &self,
        uri: &str,
        verb: Verb,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if !self.is_direct() {
            return Err(ErrorData::method_not_found::<rmcp::model::SubscribeRequestMethod>());
        }
        let client = self.client(context);
        let Some(name) = direct::owner(&self.server, uri).await else { return Ok(()) };
        let params = Map::from_iter([("uri".to_owned(), uri.into())]);
        direct::ask(&self.server, &client, &name, verb, params)
            .await
            .map_err(|fault| answer::error(&fault))?;
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        match verb {
            Verb::Unsubscribe => drop(followed.remove(uri)),
            _ => drop(followed.insert(uri.to_owned())),
        }
        Ok(())
    }
}
