//! Our side of the protocol: who we say we are, and how a server's questions find the caller.

use rmcp::RoleClient;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientResult, CustomResult, ErrorCode, ErrorData, Implementation,
    ServerNotification, ServerRequest,
};
use rmcp::service::{InboundStreamOrigin, NotificationContext, RequestContext, Service};
use serde_json::{Map, Value, json};
use std::sync::Arc;

use super::calls::Calls;
use crate::relay::{Asked, Capability, Refusal, put};

/// Answers what a server asks of us.
pub(super) struct Handler {
    pub calls: Arc<Calls>,
}

impl Service<RoleClient> for Handler {
    async fn handle_request(
        &self,
        request: ServerRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        let origin = context.extensions.get::<InboundStreamOrigin>().cloned();
        let message = serde_json::to_value(&request).unwrap_or_default();
        let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
        if method == "ping" {
            return Ok(ClientResult::empty(()));
        }
        let Some(capability) = capability(method) else {
            let text = format!("`{method}` is not known here");
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None));
        };
        let is_new = context.peer.peer_info().is_some_and(|info| !info.protocol_version.has_initialize());
        if is_new {
            let text = "servers of this revision ask by the result of a request";
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None));
        }
        let with = match &origin {
            Some(InboundStreamOrigin::OutboundRequest(id)) => Some(id),
            _ => None,
        };
        let question = self.calls.asked(with).map_err(refused)?;
        let params = message.get("params").cloned().unwrap_or_else(|| json!({}));
        let answers = tokio::select! {
            answers = put(&*question.relay, vec![Asked { name: None, capability, params }]) => answers,
            () = context.ct.cancelled() => Vec::new(),
        };
        match answers.into_iter().next() {
            Some(Ok(answer)) => Ok(ClientResult::CustomResult(CustomResult(answer))),
            Some(Err(refusal)) => Err(refused(refusal)),
            None => Err(ErrorData::internal_error("the question was taken back", None)),
        }
    }

    async fn handle_notification(
        &self,
        _: ServerNotification,
        _: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(
            offered(&[Capability::Sampling, Capability::Elicitation, Capability::Roots]),
            implementation(),
        )
    }
}

/// Who we say we are.
pub(super) fn implementation() -> Implementation {
    Implementation::new("kiwi", env!("CARGO_PKG_VERSION"))
}

/// What can be asked by this method.
pub(super) fn capability(method: &str) -> Option<Capability> {
    let all = [Capability::Sampling, Capability::Elicitation, Capability::Roots];
    all.into_iter().find(|capability| capability.method() == method)
}

/// What a server is told that it may ask.
pub(super) fn offered(capabilities: &[Capability]) -> ClientCapabilities {
    let mut offered = Map::new();
    for capability in capabilities {
        let (name, value) = match capability {
            Capability::Sampling => ("sampling", json!({})),
            Capability::Elicitation => ("elicitation", json!({"form": {}, "url": {}})),
            Capability::Roots => ("roots", json!({})),
        };
        offered.insert(name.to_owned(), value);
    }
    serde_json::from_value(Value::Object(offered)).unwrap_or_default()
}

fn refused(refusal: Refusal) -> ErrorData {
    ErrorData::new(ErrorCode(refusal.code), refusal.message, refusal.data)
}
