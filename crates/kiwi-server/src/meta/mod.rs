//! The four tools in front of everything.

mod definitions;
mod execute;
mod help;
mod load;
mod search;

pub(crate) use definitions::{NAMED, definitions};

use kiwi_model::{ErrorKind, Fault};
use rmcp::ErrorData;
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult};
use rmcp::service::{RequestContext, RoleServer};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::sync::Arc;

use crate::answer;
use crate::client::Client;
use crate::server::Server;

/// Answers a call of one of the four.
pub(crate) async fn call(
    server: &Arc<Server>,
    client: &Client,
    params: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let name = params.name.clone();
    let plain = |answer: Result<CallToolResult, Fault>| -> CallToolResponse {
        answer.unwrap_or_else(|fault| answer::failed(&fault)).into()
    };
    let arguments = || params.arguments.clone().unwrap_or_default();
    match name.as_ref() {
        "search" => Ok(plain(search::search(server, client, arguments()).await)),
        "help" => Ok(plain(help::help(server, client, arguments()))),
        "load" => load::load(server, client, params, context).await,
        "execute" => execute::execute(server, client, params, context).await,
        other => {
            let shown: String = other.chars().take(100).collect();
            let message = format!("there is no tool `{shown}`; there are search, load, execute and help");
            Err(ErrorData::invalid_params(message, None))
        }
    }
}

/// Reads the arguments of one of the four. A wrong one is told by name.
fn read<T: DeserializeOwned>(tool: &str, arguments: Map<String, Value>) -> Result<T, Fault> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        Fault::new(ErrorKind::InvalidParams, format!("{tool}: {error}"))
            .with_hint(format!("the input schema of `{tool}` lists its arguments"))
    })
}
