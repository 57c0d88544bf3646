//! Tools under their own names.

use kiwi_gate::Request;
use kiwi_mcp::McpError;
use kiwi_model::{Space, ToolRef};
use kiwi_space::Transport;
use rmcp::ErrorData;
use rmcp::model::{CallToolRequestParams, CallToolResponse, Tool};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Map, Value, json};
use std::sync::Arc;

use crate::answer;
use crate::calls::{Asking, Step};
use crate::catalogue::Catalogue;
use crate::client::Client;
use crate::server::Server;

/// A tool as a client sees it; `None` for what is not called by itself.
pub(crate) fn native_tool(tool: &kiwi_chain::Tool) -> Option<Tool> {
    if !is_callable(tool) {
        return None;
    }
    let (manifest, id) = (&tool.manifest, tool.manifest.tool_id.as_str());
    let mut schema = match &manifest.parameters {
        Some(Value::Object(schema)) => schema.clone(),
        _ => Map::new(),
    };
    schema.entry("type").or_insert_with(|| "object".into());
    let mut definition = json!({
        "name": id,
        "inputSchema": schema,
    });
    if let Value::Object(map) = &mut definition {
        let description = manifest.description.as_deref().unwrap_or(id);
        map.insert("description".into(), description.into());
        manifest.title.as_ref().map(|title| map.insert("title".into(), title.clone().into()));
        annotations(tool).map(|hints| map.insert("annotations".into(), hints));
        if let Some(schema) = tool.document.get("output_schema").filter(|schema| schema.is_object()) {
            map.insert("outputSchema".into(), schema.clone());
        }
    }
    serde_json::from_value(definition).ok()
}

/// What is said of a tool's effects. Where nobody said that it changes nothing, neither does this: clients take what is said
/// for leave to call it unasked.
fn annotations(tool: &kiwi_chain::Tool) -> Option<Value> {
    if tool.manifest.mutates_state {
        return Some(json!({"readOnlyHint": false, "destructiveHint": true}));
    }
    if let Some(definition) = tool.document.pointer("/upstream/definition") {
        let given = definition.get("annotations")?;
        let hint =
            |name: &str| Some((name.to_owned(), given.get(name).filter(|it| it.is_boolean())?.clone()));
        let hints: Map<String, Value> =
            ["readOnlyHint", "destructiveHint"].into_iter().filter_map(hint).collect();
        return (!hints.is_empty()).then(|| hints.into());
    }
    // What comes with Kiwi says what it changes.
    let is_said = tool.space == Space::System || tool.document.get("mutates_state").is_some();
    is_said.then(|| json!({"readOnlyHint": true, "destructiveHint": false}))
}

/// Whether a tool is something to call, rather than something that others run on.
fn is_callable(tool: &kiwi_chain::Tool) -> bool {
    !matches!(tool.manifest.tool_type.as_str(), "primitive" | "runtime")
}

/// Calls a tool by its name.
pub(crate) async fn call(
    server: &Arc<Server>,
    client: &Client,
    mut params: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    if !is_known(server, &params.name).await {
        let shown: String = params.name.chars().take(100).collect();
        return Err(ErrorData::invalid_params(format!("there is no tool `{shown}`"), None));
    }
    let arguments = params.arguments.take().unwrap_or_default();
    let asking = Asking {
        context,
        about: json!(["direct", params.name, arguments]),
        responses: params.input_responses,
        state: params.request_state,
    };
    let request = || {
        let tool = ToolRef::parse(&params.name)?;
        let mut call = Request::new(tool, arguments, client.caller.clone(), client.session);
        call.transport = Transport::Mcp;
        Ok(call)
    };
    Ok(match server.call(client, request, asking).await? {
        Ok(Step::Done(outcome)) => answer::native(outcome)?.into(),
        Ok(Step::Asks(input)) => input.into(),
        Err(fault) => answer::failed(&fault).into(),
    })
}

/// Whether a client may call something by this name. A server that nobody has asked yet is asked for its tools; where it
/// cannot be asked, the call itself says why.
async fn is_known(server: &Server, name: &str) -> bool {
    let Ok(tool) = ToolRef::parse(name) else { return false };
    let upstreams = server.kernel.upstreams();
    let has = |catalogue: &Catalogue| catalogue.tools.iter().any(|tool| tool.name == name);
    match upstreams.tool(&tool.id) {
        // What was put in quarantine since a shelf was read is still on it; a tool of that name that is not a server's is
        // not.
        Err(McpError::Quarantined { .. }) => {
            return server.kernel.find(&tool).is_ok_and(|tool| is_callable(&tool));
        }
        Ok(Some(offered)) if is_callable(&offered) => return true,
        _ => {}
    }
    if has(&*server.shelf.current().await) || upstreams.ensure(&tool.id).await.is_err() {
        return true;
    }
    let offered = upstreams.tool(&tool.id).ok().flatten();
    offered.is_some_and(|tool| is_callable(&tool)) || has(&*server.shelf.fresh().await)
}
