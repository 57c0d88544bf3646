//! What upstream servers have beside tools, asked for through the gate like everything else: each of their methods is a
//! tool of the system, `mcp.SERVER.VERB`, and only servers that have it have that tool.

use kiwi_gate::{Outcome, Request};
use kiwi_mcp::Offer;
use kiwi_model::{Fault, ToolRef};
use kiwi_space::Transport;
use rmcp::ErrorData;
use rmcp::model::{CompleteRequestParams, CompleteResult};
use rmcp::service::{RequestContext, RoleServer};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

use crate::answer;
use crate::calls::{Asking, Step};
use crate::client::Client;
use crate::server::Server;

/// How long lists of upstream servers are waited for. What comes later is there the next time.
const PATIENCE: Duration = Duration::from_secs(2);

/// A method of an upstream server that is no tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    GetPrompt,
    ReadResource,
    Complete,
    Subscribe,
    Unsubscribe,
}

impl Verb {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GetPrompt => "get_prompt",
            Self::ReadResource => "read_resource",
            Self::Complete => "complete",
            Self::Subscribe => "subscribe",
            Self::Unsubscribe => "unsubscribe",
        }
    }
}

/// What upstream servers list, by server. One that does not answer has nothing for now.
pub(crate) async fn listed<T: DeserializeOwned>(server: &Server, offer: Offer) -> Vec<(String, T)> {
    let mut all = Vec::new();
    for (name, items) in server.kernel.upstreams().offers(offer, PATIENCE).await {
        let items = items.iter().filter_map(|item| serde_json::from_value(item.clone()).ok());
        all.extend(items.map(|item| (name.to_string(), item)));
    }
    all
}

fn request(client: &Client, name: &str, verb: Verb, params: Map<String, Value>) -> Result<Request, Fault> {
    let tool = ToolRef::parse(&format!("mcp.{name}.{}", verb.as_str()))?;
    let mut call = Request::new(tool, params, client.caller.clone(), client.session);
    call.transport = Transport::Mcp;
    Ok(call)
}

/// What a server gave for an answer.
fn content(outcome: Outcome) -> Result<Value, Fault> {
    match (outcome.error, outcome.content) {
        (Some(fault), _) => Err(fault),
        (None, Some(content)) => Ok(content),
        (None, None) => Ok(outcome.result),
    }
}

/// Asks a server something that it answers without asking back.
pub(crate) async fn ask(
    server: &Server,
    client: &Client,
    name: &str,
    verb: Verb,
    params: Map<String, Value>,
) -> Result<Value, Fault> {
    content(server.kernel.call(request(client, name, verb, params)?).await)
}

/// How a request that may ask back went.
pub(crate) enum Told {
    Content(Value),
    Asks(rmcp::model::InputRequiredResult),
}

/// Asks a server something that it may want to ask back about.
pub(crate) async fn converse(
    server: &Arc<Server>,
    client: &Client,
    name: &str,
    verb: Verb,
    params: Map<String, Value>,
    retry: (Option<rmcp::model::InputResponses>, Option<String>),
    context: &RequestContext<RoleServer>,
) -> Result<Told, ErrorData> {
    let (responses, state) = retry;
    let about = json!(["direct", name, verb.as_str(), params]);
    let asking = Asking { context, about, responses, state };
    match server.call(client, || request(client, name, verb, params), asking).await? {
        Ok(Step::Asks(input)) => Ok(Told::Asks(input)),
        Ok(Step::Done(outcome)) => content(outcome).map(Told::Content).map_err(|fault| answer::error(&fault)),
        Err(fault) => Err(answer::error(&fault)),
    }
}

/// Completes an argument of an upstream prompt or template: the first server that has an answer.
pub(crate) async fn complete(
    server: &Server,
    client: &Client,
    params: CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    let Ok(Value::Object(mut params)) = serde_json::to_value(params) else {
        return Err(ErrorData::invalid_params("what is to be completed cannot be read", None));
    };
    params.remove("_meta");
    for name in server.kernel.upstreams().able("completions") {
        if let Ok(given) = ask(server, client, name.as_str(), Verb::Complete, params.clone()).await
            && let Ok(result) = answer::whole(given)
        {
            return Ok(result);
        }
    }
    Ok(CompleteResult::default())
}
