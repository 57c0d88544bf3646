//! What a server offers, as a tool like any other.

use kiwi_chain::{Form, Identity, Signature, Tool};
use kiwi_model::manifest::{Manifest, Source};
use kiwi_model::yaml::Document;
use kiwi_model::{ToolId, Version, integrity_of};
use serde_json::{Map, Value, json};

use crate::definition::Definition;
use crate::server::{Reach, Server, ServerName};

/// What can be asked of a server beside its tools: the last word of a tool's id, the method, and what it takes.
const METHODS: [(&str, &str, &[&str]); 5] = [
    ("read_resource", "resources/read", &["uri"]),
    ("subscribe", "resources/subscribe", &["uri"]),
    ("unsubscribe", "resources/unsubscribe", &["uri"]),
    ("get_prompt", "prompts/get", &["name"]),
    ("complete", "completion/complete", &["ref", "argument"]),
];

/// The namespace of the tools by which a server is asked for something that is no tool of its own.
const NAMESPACE: &str = "mcp";

/// The server and the rest that an id names: `github.create-pr`, or `mcp.github.read_resource`.
pub(crate) enum Named<'a> {
    /// A tool of a server.
    Tool { server: &'a str, tool: &'a str },
    /// Something else of a server.
    Method { server: &'a str, word: &'a str },
}

impl<'a> Named<'a> {
    /// Reads an id; none where it can name nothing of a server.
    pub fn read(id: &'a ToolId) -> Option<Self> {
        let (first, rest) = id.as_str().split_once('.')?;
        if first == NAMESPACE {
            let (server, word) = rest.split_once('.')?;
            return Some(Self::Method { server, word });
        }
        Some(Self::Tool { server: first, tool: rest })
    }

    /// The server's name.
    pub fn server(&self) -> Option<ServerName> {
        let (Self::Tool { server, .. } | Self::Method { server, .. }) = self;
        ServerName::parse(server).ok()
    }
}

/// The tool that a definition makes; none where it cannot be hashed or is no manifest.
pub(crate) fn of_definition(server: &Server, definition: &Definition) -> Option<Tool> {
    let id = ToolId::upstream(server.name.as_str(), &definition.name)?;
    let hint = |name: &str| definition.annotations.as_ref()?.get(name)?.as_bool();
    // What a server says of its tools may only tighten, unless a person trusts what it says.
    let mutates = hint("destructiveHint") == Some(true)
        && !(server.trusts_annotations && hint("readOnlyHint") == Some(true));
    let own = json!({
        "title": definition.title,
        "description": definition.description,
        "mutates_state": mutates,
        "parameters": definition.input_schema,
        "config": {"server": server.name, "tool": definition.name},
        "upstream": {"definition": definition.document(), "reach": reach(&server.reach)},
    });
    synthesise(server, &id, &own)
}

/// The tool by which a server is asked for something that is no tool of its own.
pub(crate) fn of_method(server: &Server, word: &str) -> Option<Tool> {
    let (_, method, required) = METHODS.iter().find(|(name, ..)| *name == word)?;
    let id = ToolId::upstream(NAMESPACE, &format!("{}.{word}", server.name))?;
    let own = json!({
        "description": format!("Ask the MCP server `{}` for `{method}`", server.name),
        "parameters": {"type": "object", "required": required},
        "config": {"server": server.name, "request": method},
        "upstream": {"reach": reach(&server.reach)},
    });
    synthesise(server, &id, &own)
}

fn synthesise(server: &Server, id: &ToolId, own: &Value) -> Option<Tool> {
    let version = Version::new(1, 0, 0);
    let executor = match server.reach {
        Reach::Stdio { .. } => "mcp_stdio_runtime",
        Reach::Http { .. } => "mcp_http_runtime",
    };
    let mut document = Map::new();
    for (key, value) in [("tool_id", id.as_str()), ("tool_type", "mcp"), ("executor", executor)] {
        document.insert(key.into(), value.into());
    }
    // A server's tool has no version of its own: its definition is its identity.
    document.insert("version".into(), version.to_string().into());
    document.extend(own.as_object()?.clone().into_iter().filter(|(_, value)| !value.is_null()));
    let path = format!("the MCP server `{}`", server.name);
    let source = Source { file: path.clone(), id: id.clone(), script: None };
    let document = Document::synthetic(Value::Object(document));
    let (document, manifest, _) = Manifest::read(&document, &source).ok()?;
    let integrity = integrity_of(id, &version, &document, &[]).ok()?;
    Some(Tool {
        manifest,
        document,
        files: Vec::new(),
        integrity,
        identity: Identity::Computed,
        signature: Signature::None,
        space: server.space,
        category: NAMESPACE.to_owned(),
        path,
        form: Form::Upstream,
        warnings: Vec::new(),
    })
}

/// How a server is reached, as far as it is part of what its tools are. Values of variables are not: they are secrets,
/// and change.
pub(crate) fn reach(reach: &Reach) -> Value {
    match reach {
        Reach::Stdio { command, args, env, cwd } => {
            let env: Vec<&String> = env.keys().collect();
            json!({"command": command, "args": args, "env": env, "cwd": cwd})
        }
        Reach::Http { url, headers, auth } => {
            let headers: Vec<&String> = headers.keys().collect();
            json!({"url": url, "headers": headers, "auth": auth})
        }
    }
}
