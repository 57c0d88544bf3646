//! What a server said, before the protocol library sees it: everything that need not pass through the library's typed
//! forms does not, so that nothing of it is lost.

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, CustomRequest, CustomResult, ErrorCode, ErrorData,
    GetExtensions as _, GetMeta as _, RequestId, ServerJsonRpcMessage, ServerRequest, ServerResult,
};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

use super::calls::{CallKey, Calls};

/// A message of JSON-RPC, whatever it is.
#[derive(Debug, Deserialize)]
pub(super) struct Heard {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Option<Value>,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    error: Option<Value>,
}

/// The form in which the library needs an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As the server gave it.
    Raw,
    /// In the library's own.
    Typed,
    /// What a server says about the revisions it speaks.
    Discovery,
}

impl Form {
    /// The form for the answer to a request.
    pub fn of(request: &ClientRequest) -> Self {
        match request {
            ClientRequest::DiscoverRequest(_) => Self::Discovery,
            ClientRequest::InitializeRequest(_) | ClientRequest::SubscriptionsListenRequest(_) => Self::Typed,
            _ => Self::Raw,
        }
    }

    fn answer(self, result: Value, id: RequestId) -> ServerJsonRpcMessage {
        let typed = match self {
            Self::Raw => None,
            Self::Typed | Self::Discovery => serde_json::from_value::<ServerResult>(result.clone()).ok(),
        };
        // Some older servers answer whatever they do not know with nothing at all. That is a no.
        if self == Self::Discovery && !matches!(typed, Some(ServerResult::DiscoverResult(_))) {
            let error =
                ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "the answer says nothing about revisions", None);
            return ServerJsonRpcMessage::error(error, Some(id));
        }
        let result = typed.unwrap_or_else(|| ServerResult::CustomResult(CustomResult(result)));
        ServerJsonRpcMessage::response(result, id)
    }
}

/// What is to be done with a text that holds a message.
pub(super) enum Tapped {
    /// The library reads it too.
    Pass,
    /// It was dealt with.
    Done,
}

/// What is to be done with a message.
pub(super) enum Sorted {
    /// It is for the library.
    Pass(Box<ServerJsonRpcMessage>),
    /// It was dealt with, or nobody can use it.
    Done,
}

impl Heard {
    /// The number of the request that this answers.
    pub fn answers(&self) -> Option<RequestId> {
        if self.method.is_some() {
            return None;
        }
        answered(self.id.clone()?)
    }

    /// The result it carries.
    pub fn result(&self) -> Option<&Value> {
        (self.method.is_none() && self.error.is_none()).then_some(&self.result)
    }

    /// Listens to a message that goes to the library in any case, as a text.
    pub fn tap(mut self, calls: &Calls) -> Tapped {
        match (&self.method, &self.id) {
            (Some(method), None) if calls.hear(method, &mut self.params) => Tapped::Done,
            // Not listening would hold up the answers that come the same way, so the question is lost.
            (Some(_), Some(_)) if !calls.has_room() => Tapped::Done,
            (Some(_), Some(_)) => {
                calls.count_request();
                Tapped::Pass
            }
            (Some(_), None) => Tapped::Pass,
            (None, _) => {
                if let Some(id) = self.answers()
                    && self.error.is_none()
                {
                    calls.keep(&id, self.result);
                }
                Tapped::Pass
            }
        }
    }

    /// Sorts a message. `form` says in which form the library needs the answer to a request.
    pub fn sort(self, calls: &Arc<Calls>, form: impl FnOnce(&RequestId) -> Form) -> Sorted {
        let Self { id, method, mut params, result, error } = self;
        let message = match (method, id) {
            (Some(method), None) => {
                if calls.hear(&method, &mut params) {
                    return Sorted::Done;
                }
                let text = serde_json::json!({"jsonrpc": "2.0", "method": method, "params": params});
                serde_json::from_value(text).ok()
            }
            (Some(method), Some(id)) => {
                let Ok(id) = serde_json::from_value(id) else { return Sorted::Done };
                calls.count_request();
                let request = CustomRequest::new(method, params);
                Some(ServerJsonRpcMessage::request(ServerRequest::CustomRequest(request), id))
            }
            (None, id) => {
                let answer = match error {
                    Some(error) => Err(serde_json::from_value(error).unwrap_or_else(|_| {
                        ErrorData::internal_error("the server's error cannot be read", None)
                    })),
                    None => Ok(result),
                };
                match id.and_then(answered) {
                    Some(id) => match calls.answer(&id, answer) {
                        Some(Ok(result)) => Some(form(&id).answer(result, id)),
                        Some(Err(error)) => Some(ServerJsonRpcMessage::error(error, Some(id))),
                        None => None,
                    },
                    None => answer.err().map(|error| ServerJsonRpcMessage::error(error, None)),
                }
            }
        };
        message.map_or(Sorted::Done, |message| Sorted::Pass(Box::new(message)))
    }
}

/// The number of our request that is answered. Ours are numbers; some servers give them back as texts.
fn answered(id: Value) -> Option<RequestId> {
    match id {
        Value::String(text) => text.parse().ok().map(RequestId::Number),
        other => serde_json::from_value(other).ok(),
    }
}

/// What a transport notes about a message of ours before it goes out.
pub(super) fn note(calls: &Calls, message: &ClientJsonRpcMessage) {
    if let ClientJsonRpcMessage::Request(request) = message
        && let Some(key) = request.request.extensions().get::<CallKey>()
    {
        let token = request.request.get_meta().get_progress_token();
        calls.bind(*key, request.id.clone(), token);
    }
}

/// Whether a message of ours answers a request of the server.
pub(super) const fn is_answer(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_))
}
