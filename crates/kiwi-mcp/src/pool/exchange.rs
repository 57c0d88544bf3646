//! One request and its answer, with as many questions in between as the server may ask.

use rmcp::RoleClient;
use rmcp::model::{
    ClientRequest, CustomRequest, CustomResult, GetExtensions as _, MetaObject, RequestMetaObject,
    ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, ServiceError};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::unix::pipe::Sender;

use super::calls::InFlight;
use super::failure::{Trouble, of_protocol, of_request, unavailable};
use super::handler::{capability, offered};
use super::lane::{Envelope, FAREWELL, Message, withdraw};
use super::live::Live;
use crate::error::McpError;
use crate::relay::{Asked, Relay, put};
use crate::stream::Outgoing;

/// How often a server may answer with questions.
const MOST_ROUNDS: usize = 10;
/// How many questions may come together.
const MOST_QUESTIONS: usize = 32;

/// Where a request says what its caller wants to hear of the server's log.
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// What only we say to a server, whatever a caller has in its request.
const OURS: [&str; 5] = [
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
    LOG_LEVEL,
    "progressToken",
];

/// What came of a request.
pub(super) struct Exchanged {
    /// The result, as the server gave it.
    pub result: Value,
    /// For a list of tools over HTTP: those whose parameters can be sent in headers as they want it.
    pub usable: Option<BTreeSet<String>>,
}

/// Waits until a call has used up its time; what it waited for its caller's answers does not count.
pub(super) async fn time_up(flight: &InFlight, limit: Duration) {
    let begun = Instant::now();
    loop {
        let (asked, is_asking) = flight.asked();
        let left = limit.saturating_sub(begun.elapsed().saturating_sub(asked));
        match (left.is_zero(), is_asking) {
            (true, false) => return,
            (true, true) => tokio::time::sleep(Duration::from_millis(200)).await,
            (false, _) => tokio::time::sleep(left).await,
        }
    }
}

/// Who asks a server, and by which method.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
    pub live: &'a Live,
    pub flight: &'a InFlight,
    pub method: &'a str,
    pub relay: &'a Arc<dyn Relay>,
}

/// Makes a request and answers what the server wants to know before it answers.
pub(super) async fn exchange(asking: Asking<'_>, params: &Value) -> Result<Exchanged, Trouble> {
    let Asking { live, flight, relay, .. } = asking;
    let mut params = Cow::Borrowed(params);
    for _ in 0..MOST_ROUNDS {
        let exchanged = asking.once(&params).await?;
        let is_question =
            exchanged.result.get("resultType").and_then(Value::as_str) == Some("input_required");
        if !live.about.is_new || !is_question {
            return Ok(exchanged);
        }
        let answers = answer(live, flight, &exchanged.result, relay).await.map_err(Trouble::Failed)?;
        if !params.is_object() {
            params = Cow::Owned(Value::Object(Map::new()));
        }
        let Some(fields) = params.to_mut().as_object_mut() else { continue };
        fields.insert("inputResponses".into(), Value::Object(answers));
        match exchanged.result.get("requestState") {
            Some(state) => fields.insert("requestState".into(), state.clone()),
            None => fields.remove("requestState"),
        };
    }
    Err(Trouble::Failed(unavailable(&live.server, "asks for more and more")))
}

/// Asks the caller everything the server wants to know.
async fn answer(
    live: &Live,
    flight: &InFlight,
    result: &Value,
    relay: &Arc<dyn Relay>,
) -> Result<Map<String, Value>, McpError> {
    let wrong = |problem: String| unavailable(&live.server, problem);
    let empty = Map::new();
    let requests = result.get("inputRequests").and_then(Value::as_object).unwrap_or(&empty);
    if requests.len() > MOST_QUESTIONS {
        return Err(wrong("asks too much at once".into()));
    }
    let mut questions = Vec::new();
    for (name, request) in requests {
        let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
        let capability = capability(method).ok_or_else(|| wrong(format!("asks for `{method}`")))?;
        let params = request.get("params").cloned().unwrap_or_else(|| Value::Object(Map::new()));
        questions.push(Asked { name: Some(name.clone()), capability, params });
    }
    if questions.is_empty() {
        return Ok(Map::new());
    }
    let waiting = flight.question();
    let answers = put(&**relay, questions).await;
    drop(waiting);
    let mut responses = Map::new();
    for (key, answer) in requests.keys().zip(answers) {
        let answer = answer.map_err(|refusal| McpError::Protocol {
            server: live.server.clone(),
            code: refusal.code,
            message: format!("it needs an answer that was not given: {refusal}"),
            data: refusal.data,
        })?;
        responses.insert(key.clone(), answer);
    }
    Ok(responses)
}

impl Asking<'_> {
    /// One request, one result.
    async fn once(self, params: &Value) -> Result<Exchanged, Trouble> {
        match &self.live.lane {
            Some(lane) => self.shortly(lane, params).await,
            // Large, and not for those who are in a hurry.
            None => Box::pin(self.through_library(params)).await,
        }
    }

    /// The same by the short way.
    async fn shortly(self, lane: &Outgoing<Sender>, params: &Value) -> Result<Exchanged, Trouble> {
        let Self { live, flight, method, .. } = self;
        let (id, answered) = flight.expect().ok_or(Trouble::Gone)?;
        let meta = Envelope { always: &live.about.envelope, own: &self.envelope(params), token: id };
        let mut unanswered = Unanswered { lane, id: Some(id) };
        let result = match lane.send(&Message::new(id, method, params, meta)).await {
            Ok(()) => tokio::select! {
                biased;
                answered = answered => match answered {
                    Ok(Ok(result)) => Ok(Exchanged { result, usable: None }),
                    Ok(Err(error)) => Err(Trouble::Failed(of_protocol(&live.server, error))),
                    Err(_) => Err(Trouble::Gone),
                },
                why = live.gone() => Err(Trouble::Failed(why)),
            },
            // A pipe whose reader is gone.
            Err(_) => Err(Trouble::Gone),
        };
        unanswered.id = None;
        result
    }

    /// The same through the protocol library.
    async fn through_library(self, params: &Value) -> Result<Exchanged, Trouble> {
        let Self { live, flight, method, .. } = self;
        let meta = self.envelope(params);
        let mut params = params.clone();
        params.as_object_mut().map(|fields| fields.remove("_meta"));
        let mut request = CustomRequest::new(method, (!params.is_null()).then_some(params));
        request.extensions_mut().insert(flight.key());
        let options = PeerRequestOptions::no_options().with_meta(meta);
        let sent = live.peer.send_request_with_option(ClientRequest::CustomRequest(request), options);
        let handle = sent.await.map_err(|error| of_request(&live.server, error))?;
        let mut pending = Pending(Some(handle));
        let result = tokio::select! {
            biased;
            result = pending.result() => result.map(|result| result.map_err(|error| of_request(&live.server, error))),
            why = live.gone() => Some(Err(Trouble::Failed(why))),
        };
        pending.0 = None;
        let result = result.unwrap_or(Err(Trouble::Gone))?;
        let usable = match &result {
            ServerResult::ListToolsResult(list) => {
                Some(list.tools.iter().map(|tool| tool.name.to_string()).collect())
            }
            _ => None,
        };
        let result = match result {
            ServerResult::CustomResult(CustomResult(value)) => value,
            typed => flight.take_raw().unwrap_or_else(|| serde_json::to_value(&typed).unwrap_or_default()),
        };
        Ok(Exchanged { result, usable })
    }

    /// What a request says beside what it asks.
    fn envelope(self, params: &Value) -> RequestMetaObject {
        let Self { live, relay, .. } = self;
        let mut meta = match params.get("_meta") {
            Some(Value::Object(given)) => given.clone(),
            _ => Map::new(),
        };
        // These are ours to say.
        meta.retain(|name, _| !OURS.contains(&name.as_str()));
        let mut meta = RequestMetaObject(MetaObject(meta));
        if live.about.is_new {
            meta.set_client_capabilities(offered(&relay.capabilities()));
            if let Some(level) = relay.log_level() {
                meta.0.0.insert(LOG_LEVEL.to_owned(), level.into());
            }
        }
        meta
    }
}

/// A request by the short way whose answer is waited for. Dropping it tells the server that nobody does any more.
struct Unanswered<'a> {
    lane: &'a Outgoing<Sender>,
    id: Option<i64>,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            withdraw(self.lane, id);
        }
    }
}

/// A request whose answer is waited for. Dropping it tells the server that nobody does any more.
struct Pending(Option<RequestHandle<RoleClient>>);

impl Pending {
    async fn result(&mut self) -> Option<Result<ServerResult, ServiceError>> {
        (&mut self.0.as_mut()?.rx).await.ok()
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move {
                let cancel = handle.cancel(Some("nobody waits for it any more".into()));
                let _ = tokio::time::timeout(FAREWELL, cancel).await;
            });
        }
    }
}
