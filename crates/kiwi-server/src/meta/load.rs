//! `load`: a whole item, or a page of a long output.

use kiwi_chain::Tool;
use kiwi_gate::Request;
use kiwi_model::{Content, ErrorKind, Fault, Space};
use kiwi_space::{TextItem, TextKind, Transport};
use rmcp::ErrorData;
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult};
use rmcp::service::{RequestContext, RoleServer};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

use super::execute::{system_tool, through_the_gate, tool_ref};
use super::read;
use super::search::{space_of, unknown_type};
use crate::answer::{self, told};
use crate::client::Client;
use crate::outputs::PAGE;
use crate::server::Server;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    item_type: String,
    item_id: String,
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    source: Option<String>,
    #[serde(default)]
    destination: Option<String>,
}

/// What was asked for.
enum Loaded {
    Tool(Arc<Tool>),
    Text(Arc<TextItem>),
    Output(Value),
}

/// Gives an item whole; with a destination, copies it there through the gate.
pub(super) async fn load(
    server: &Arc<Server>,
    client: &Client,
    params: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let arguments = params.arguments.clone().unwrap_or_default();
    let found = read::<Arguments>("load", arguments.clone())
        .and_then(|request| Ok((find(server, client, &request)?, request.destination)));
    let (loaded, destination) = match found {
        Ok(found) => found,
        Err(fault) => return Ok(answer::failed(&fault).into()),
    };
    let Some(destination) = destination else {
        return Ok(shown(server, client, loaded).into());
    };
    let copy = match copy(server, &loaded, &destination) {
        Ok(copy) => copy,
        Err(fault) => return Ok(answer::failed(&fault).into()),
    };
    through_the_gate(server, client, params, context, arguments, || {
        let tool = system_tool("kiwi.create")?;
        let mut call = Request::new(tool, copy, client.caller.clone(), client.session);
        call.transport = Transport::Mcp;
        Ok(call)
    })
    .await
}

fn find(server: &Server, client: &Client, request: &Arguments) -> Result<Loaded, Fault> {
    let space = space_of(request.source.as_deref())?;
    let kind = match request.item_type.as_str() {
        "output" => return server.outputs.read(client.session, &request.item_id).map(Loaded::Output),
        "tool" | "script" | "mcp" => {
            let wanted = tool_ref(&request.item_id, request.version.as_deref())?;
            let Some(space) = space else { return server.kernel.find(&wanted).map(Loaded::Tool) };
            let listed = server.kernel.spaces().list(space).into_iter();
            let fits = |tool: &Arc<Tool>| {
                let manifest = &tool.manifest;
                manifest.tool_id == wanted.id
                    && wanted.requirement.as_ref().is_none_or(|it| it.matches(&manifest.version))
            };
            let tools = listed.filter_map(|it| it.result.ok()).filter(fits);
            let best = tools.max_by(|a, b| a.manifest.version.cmp(&b.manifest.version));
            return best.map(Loaded::Tool).ok_or_else(|| {
                Fault::new(ErrorKind::NotFound, format!("the {space} space has no tool `{wanted}`"))
                    .with_hint("leave `source` out to look everywhere")
            });
        }
        "directive" => TextKind::Directive,
        "knowledge" => TextKind::Knowledge,
        other => return Err(unknown_type(other)),
    };
    let item = server.kernel.spaces().text(kind, &request.item_id, space)?;
    match &request.version {
        Some(version) if item.version.as_ref() != Some(version) => {
            let has = item.version.as_deref().unwrap_or("none");
            Err(Fault::new(
                ErrorKind::NotFound,
                format!("`{}` is there in version `{has}`, not `{version}`", item.id),
            )
            .with_hint("leave `version` out to get what there is"))
        }
        _ => Ok(Loaded::Text(item)),
    }
}

fn shown(server: &Server, client: &Client, loaded: Loaded) -> CallToolResult {
    match loaded {
        Loaded::Output(page) => {
            let text = page.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
            told(page, text)
        }
        Loaded::Tool(tool) => {
            let manifest = &tool.manifest;
            let files: Vec<Value> = tool.files.iter().map(|file| file_shown(server, client, file)).collect();
            let structured = json!({
                "status": "success",
                "type": if manifest.tool_type == "mcp" { "mcp" } else { "tool" },
                "id": manifest.tool_id, "version": manifest.version, "description": manifest.description,
                "source": tool.space.as_str(), "category": tool.category, "path": tool.path,
                "integrity": tool.integrity, "parameters": manifest.parameters,
                "mutates_state": manifest.mutates_state, "tags": manifest.tags,
                "manifest": tool.document, "files": files, "warnings": tool.warnings,
            });
            let description = manifest.description.as_deref().unwrap_or_default();
            let parameters = manifest.parameters.as_ref().map(ToString::to_string).unwrap_or_default();
            told(structured, format!("{} — {description}\nparameters: {parameters}", tool.name()))
        }
        Loaded::Text(item) => {
            let mut structured = json!({
                "status": "success", "type": item.kind.as_str(), "id": item.id, "version": item.version,
                "title": item.title, "description": item.description, "source": item.space.as_str(),
                "category": item.category, "path": item.path, "sha256": item.sha256, "tags": item.tags,
                "inputs": item.inputs, "metadata": item.metadata,
            });
            let (text, rest) = cut(server, client, item.text.clone());
            if let Value::Object(map) = &mut structured {
                map.insert("text".into(), text.clone().into());
                rest.map(|rest| map.insert("output".into(), rest));
            }
            told(structured, text)
        }
    }
}

/// A file with its text, if it is text.
fn file_shown(server: &Server, client: &Client, file: &kiwi_model::File) -> Value {
    let mut shown = json!({
        "path": file.entry.path, "sha256": file.entry.sha256, "is_executable": file.entry.is_executable,
    });
    if let (Content::Bytes(bytes), Value::Object(map)) = (&file.content, &mut shown)
        && let Ok(text) = std::str::from_utf8(bytes)
    {
        let (text, rest) = cut(server, client, text.to_owned());
        map.insert("text".into(), text.into());
        rest.map(|rest| map.insert("output".into(), rest));
    }
    shown
}

fn cut(server: &Server, client: &Client, text: String) -> (String, Option<Value>) {
    if text.len() <= PAGE {
        return (text, None);
    }
    let cut = server.outputs.keep(client.session, text);
    (cut.page, Some(cut.rest))
}

/// The parameters of `kiwi.create` that make the same item there.
fn copy(server: &Server, loaded: &Loaded, destination: &str) -> Result<Map<String, Value>, Fault> {
    let space = match destination {
        "project" => Space::Project,
        "user" => Space::User,
        other => {
            let shown: String = other.chars().take(60).collect();
            let fault = Fault::new(ErrorKind::InvalidParams, format!("`{shown}` is no destination"));
            return Err(fault.with_hint("one of project, user"));
        }
    };
    let root = match space {
        // The project is where calls are made from; the user's folder is somewhere else.
        Space::Project => ".ai".to_owned(),
        _ => match server.kernel.spaces().ai(space) {
            Some(ai) => ai.display().to_string(),
            None => return Err(Fault::new(ErrorKind::NotFound, "there is no user space here")),
        },
    };
    let mut made = Map::new();
    let mut put = |name: &str, value: Value| made.insert(name.to_owned(), value);
    match loaded {
        Loaded::Output(_) => {
            let fault = Fault::new(ErrorKind::InvalidParams, "output is read, not copied");
            return Err(fault.with_hint("leave `destination` out"));
        }
        Loaded::Text(item) => {
            let category = folder(&item.category);
            put("item_type", item.kind.as_str().into());
            put("item_id", item.id.clone().into());
            put("path", format!("{root}/{}/{category}{}.md", item.kind.folder(), item.id).into());
            put("content", item.text.clone().into());
        }
        Loaded::Tool(tool) => {
            let id = tool.manifest.tool_id.to_string();
            let category = folder(&tool.category);
            put("item_type", "tool".into());
            put("item_id", id.clone().into());
            let mut files = Map::new();
            for file in &tool.files {
                files.insert(file.entry.path.clone(), text_of(&id, file)?.into());
            }
            let main = std::path::Path::new(&tool.path)
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            if main == "tool.yaml" {
                put("path", format!("{root}/tools/{category}{id}").into());
                put("files", Value::Object(files));
            } else {
                let content = files.remove(main).unwrap_or_default();
                put("path", format!("{root}/tools/{category}{main}").into());
                put("content", content);
            }
        }
    }
    Ok(made)
}

fn folder(category: &str) -> String {
    if category.is_empty() { String::new() } else { format!("{}/", category.trim_matches('/')) }
}

fn text_of(id: &str, file: &kiwi_model::File) -> Result<String, Fault> {
    let path = &file.entry.path;
    let refused = |why: &str| {
        Fault::new(ErrorKind::ToolFailed, format!("`{path}` of `{id}` cannot be copied: {why}"))
            .with_hint("a person can copy the folder")
    };
    match &file.content {
        Content::Bytes(bytes) => {
            std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| refused("it is not text"))
        }
        Content::OnDisk(_) => Err(refused("it is too large")),
    }
}
