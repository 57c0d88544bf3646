//! `execute`: everything that does something, through the gate.

use kiwi_gate::Request;
use kiwi_model::lockfile::LockMode;
use kiwi_model::{ErrorKind, Fault, Space, ToolId, ToolRef};
use kiwi_space::{TextKind, Transport};
use rmcp::ErrorData;
use rmcp::model::{CallToolRequestParams, CallToolResponse};
use rmcp::service::{RequestContext, RoleServer};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

use super::read;
use super::search::unknown_type;
use crate::answer;
use crate::calls::{Asking, Step};
use crate::client::Client;
use crate::server::Server;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    item_type: String,
    item_id: String,
    #[serde(default)]
    parameters: Option<Map<String, Value>>,
    #[serde(default)]
    action: Option<String>,
    #[serde(default)]
    dry_run: Option<bool>,
    #[serde(default)]
    lock: Option<LockMode>,
    #[serde(default)]
    version: Option<String>,
}

/// Runs a tool, or does something with an item.
pub(super) async fn execute(
    server: &Arc<Server>,
    client: &Client,
    params: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let arguments = params.arguments.clone().unwrap_or_default();
    let (tool, parameters, request) = match read::<Arguments>("execute", arguments.clone()) {
        Err(fault) => return Ok(answer::failed(&fault).into()),
        Ok(request) => match meant(server, &request) {
            Err(fault) => return Ok(answer::failed(&fault).into()),
            Ok((tool, parameters)) => (tool, parameters, request),
        },
    };
    through_the_gate(server, client, params, context, arguments, || {
        let mut call = Request::new(tool, parameters, client.caller.clone(), client.session);
        call.transport = Transport::Mcp;
        call.lock = request.lock;
        call.dry_run = request.dry_run.unwrap_or(false);
        Ok(call)
    })
    .await
}

/// Makes a call and tells what it came to.
pub(super) async fn through_the_gate(
    server: &Arc<Server>,
    client: &Client,
    params: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
    arguments: Map<String, Value>,
    request: impl FnOnce() -> Result<Request, Fault>,
) -> Result<CallToolResponse, ErrorData> {
    let asking = Asking {
        context,
        about: json!(["meta", params.name, arguments]),
        responses: params.input_responses,
        state: params.request_state,
    };
    Ok(match server.call(client, request, asking).await? {
        Ok(Step::Done(outcome)) => answer::executed(&server.outputs, client.session, outcome).into(),
        Ok(Step::Asks(input)) => input.into(),
        Err(fault) => answer::failed(&fault).into(),
    })
}

/// The tool that does what is asked for, and its parameters.
fn meant(server: &Server, request: &Arguments) -> Result<(ToolRef, Map<String, Value>), Fault> {
    let family = match request.item_type.as_str() {
        "tool" | "script" | "mcp" => "tool",
        "directive" => "directive",
        "knowledge" => "knowledge",
        other => return Err(unknown_type(other)),
    };
    let parameters = request.parameters.clone().unwrap_or_default();
    match request.action.as_deref().unwrap_or("run") {
        "run" if family == "tool" => {
            Ok((tool_ref(&request.item_id, request.version.as_deref())?, parameters))
        }
        "run" => {
            let hint = format!(
                "load(item_type=\"{family}\", item_id=\"{}\") gives its text to follow",
                request.item_id
            );
            Err(Fault::new(ErrorKind::MissingRequirement, format!("a {family} is read, not run, here"))
                .with_hint(hint))
        }
        "create" => create(family, &request.item_id, parameters),
        "publish" if family != "tool" => Err(Fault::new(
            ErrorKind::MissingRequirement,
            format!("a {family} cannot be published: registries hold tools"),
        )
        .with_hint("an item can be copied: load with `destination`")),
        "publish" if !server.kernel.has_registry() => {
            Err(Fault::new(ErrorKind::MissingRequirement, "publishing needs a registry, and none is set up")
                .with_hint("the user names one by `KIWI_REGISTRY` or `registry.url`"))
        }
        action @ ("update" | "delete" | "validate" | "sign" | "publish") => {
            let path = place(server, family, &request.item_id);
            about(action, family, &request.item_id, path, parameters)
        }
        "rollback" => Err(Fault::new(
            ErrorKind::MissingRequirement,
            "rolling back needs a checkpoint, and none was taken",
        )
        .with_hint("help(action=\"checkpoint\") marks one; what a tool changed is in the audit log")),
        other => {
            let shown: String = other.chars().take(60).collect();
            Err(Fault::new(ErrorKind::InvalidParams, format!("`{shown}` is no action"))
                .with_hint("one of run, create, update, delete, validate, sign, publish, rollback"))
        }
    }
}

/// A tool by name, and the versions that will do.
pub(super) fn tool_ref(id: &str, version: Option<&str>) -> Result<ToolRef, Fault> {
    match version {
        Some(version) if !id.contains('@') => ToolRef::parse(&format!("{id}@{version}")),
        _ => ToolRef::parse(id),
    }
}

fn create(
    family: &str,
    id: &str,
    mut parameters: Map<String, Value>,
) -> Result<(ToolRef, Map<String, Value>), Fault> {
    let mut take = |name: &str| parameters.remove(name).and_then(|it| it.as_str().map(str::to_owned));
    let (content, category, extension) = (take("content"), take("category"), take("extension"));
    let files = parameters.remove("files");
    if let Some(unknown) = parameters.keys().next() {
        return Err(invalid(format!("`{unknown}` is nothing that an item is made of")));
    }
    let (folder, extension) = match family {
        "tool" => ("tools", extension.unwrap_or_else(|| "yaml".to_owned())),
        "directive" => ("directives", "md".to_owned()),
        _ => ("knowledge", "md".to_owned()),
    };
    let category = category.map(|category| format!("{category}/")).unwrap_or_default();
    let path = format!(".ai/{folder}/{category}{id}");
    let mut made = Map::new();
    made.insert("item_type".into(), family.into());
    made.insert("item_id".into(), id.into());
    match (content, files) {
        (Some(content), None) => {
            made.insert("path".into(), format!("{path}.{extension}").into());
            made.insert("content".into(), content.into());
        }
        (None, Some(files)) => {
            made.insert("path".into(), path.into());
            made.insert("files".into(), files);
        }
        _ => return Err(invalid("either `content` or `files` says what it is".to_owned())),
    }
    Ok((system_tool("kiwi.create")?, made))
}

fn about(
    action: &str,
    family: &str,
    id: &str,
    path: Option<String>,
    mut parameters: Map<String, Value>,
) -> Result<(ToolRef, Map<String, Value>), Fault> {
    let path = path.or_else(|| parameters.get("path").and_then(Value::as_str).map(str::to_owned));
    let path = path.ok_or_else(|| {
        let shown: String = id.chars().take(100).collect();
        Fault::new(ErrorKind::NotFound, format!("the project has no {family} `{shown}`")).with_hint(
            "only what lies in the project can be changed; load with `destination` copies an item there",
        )
    })?;
    let mut made = Map::new();
    made.insert("item_type".into(), family.into());
    made.insert("item_id".into(), id.into());
    made.insert("path".into(), path.into());
    if action == "update" {
        let content = parameters.remove("content").filter(Value::is_string);
        made.insert(
            "content".into(),
            content.ok_or_else(|| invalid("`content` says what it is to be".to_owned()))?,
        );
    }
    Ok((system_tool(&format!("kiwi.{action}"))?, made))
}

/// Where an item of the project lies, from the project's folder. A package is as it was installed.
fn place(server: &Server, family: &str, id: &str) -> Option<String> {
    let spaces = server.kernel.spaces();
    let text = |kind| spaces.text(kind, id, Some(Space::Project)).ok().map(|text| text.path.clone());
    let path = match family {
        "directive" => text(TextKind::Directive)?,
        "knowledge" => text(TextKind::Knowledge)?,
        _ => {
            let tool = server.kernel.find(&tool_ref(id, None).ok()?).ok()?;
            (tool.space == Space::Project).then(|| tool.path.clone())?
        }
    };
    let below = std::path::Path::new(&path).strip_prefix(spaces.project_root()?).ok()?.to_str()?;
    (!below.starts_with(".ai/packages/")).then(|| below.to_owned())
}

/// A tool of the system.
pub(super) fn system_tool(id: &str) -> Result<ToolRef, Fault> {
    let id = ToolId::parse(id).map_err(|error| Fault::new(ErrorKind::Internal, error.to_string()))?;
    Ok(ToolRef { id, requirement: None })
}

fn invalid(message: String) -> Fault {
    Fault::new(ErrorKind::InvalidParams, message)
        .with_hint("parameters of create: content or files, category, extension; of update: content")
}
