//! Servers that other clients know: their files read, their words put into ours.
//!
//! What cannot be taken over is never left out in silence: an entry is taken with notes, or passed over with a reason.

mod convert;
#[cfg(test)]
mod tests;
mod variables;

use kiwi_model::Space;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::Path;

use crate::client::Client;
use crate::edit::Format;
use crate::error::McpError;
use crate::registry::check_reach;
use crate::server::{Server, ServerName, ServerNameError};

/// More is nobody's settings.
const MOST_BYTES: usize = 32 << 20;

/// What a file of another client holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Imported {
    /// What can be taken over.
    pub taken: Vec<Taken>,
    /// What cannot.
    pub skipped: Vec<Skipped>,
}

/// A server that can be taken over.
#[derive(Debug, Clone, PartialEq)]
pub struct Taken {
    /// The server, in our words.
    pub server: Server,
    /// Its name there.
    pub original: String,
    /// What is not quite as it was.
    pub notes: Vec<String>,
}

/// A server that cannot be taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its name there.
    pub original: String,
    /// Why not.
    pub why: String,
}

/// Whose file it is.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// The file.
    pub file: &'a Path,
    /// The client, where somebody said so; else it is told by what the file holds.
    pub client: Option<Client>,
    /// The project, whose own servers some clients keep in the user's file.
    pub project: Option<&'a Path>,
}

/// Reads a file of another client. Servers get names that none of `known` has.
pub fn import(
    text: &str,
    origin: Origin<'_>,
    space: Space,
    known: &BTreeSet<ServerName>,
) -> Result<Imported, McpError> {
    let bad = |problem: String| McpError::BadRegistry { file: origin.file.to_owned(), problem };
    if text.len() > MOST_BYTES {
        return Err(bad(format!("it has more than {MOST_BYTES} bytes")));
    }
    let extension = origin.file.extension().and_then(|extension| extension.to_str());
    let format = match (origin.client, extension) {
        (Some(client), _) => client.format(),
        (None, Some("toml")) => Format::Toml,
        (None, Some("yaml" | "yml")) => Format::Yaml,
        (None, _) => Format::Json,
    };
    let value = format.read(text).map_err(|problem| bad(problem.to_string()))?;
    let maps = find(&value, origin);
    if maps.is_empty() && origin.client.is_none() {
        return Err(bad("it names no MCP servers in a way that is known".to_owned()));
    }
    let mut imported = Imported::default();
    let mut names = known.clone();
    for (client, servers) in maps {
        for (original, entry) in servers {
            match take(client, original, entry, space, &mut names) {
                Ok(taken) => imported.taken.push(taken),
                Err(why) => imported.skipped.push(Skipped { original: original.clone(), why }),
            }
        }
    }
    Ok(imported)
}

/// The maps of servers in a file, each with the client whose words it is written in.
fn find<'a>(value: &'a Value, origin: Origin<'_>) -> Vec<(Client, &'a Map<String, Value>)> {
    let at = |path: &[&str]| crate::edit::at(value, path);
    if let Some(client) = origin.client {
        let mut maps: Vec<_> = at(client.path(value)).map(|map| (client, map)).into_iter().collect();
        maps.extend(own_of_project(value, origin.project));
        return maps;
    }
    let is_gemini = origin.file.components().any(|part| part.as_os_str() == ".gemini");
    let common = if is_gemini { Client::Gemini } else { Client::ClaudeCode };
    let mut maps = Vec::new();
    maps.extend(at(&["mcpServers"]).map(|map| (common, map)));
    maps.extend(at(&["servers"]).map(|map| (Client::Vscode, map)));
    maps.extend(at(&["mcp_servers"]).map(|map| (Client::Codex, map)));
    maps.extend(at(&["extensions"]).map(|map| (Client::Goose, map)));
    match at(&["mcp", "servers"]) {
        // Older settings of VS Code have commands that are texts, opencode's are lists.
        Some(map) if map.values().any(|entry| entry.get("command").is_some_and(Value::is_string)) => {
            maps.push((Client::Vscode, map));
        }
        Some(map) => maps.push((Client::Opencode, map)),
        None => maps.extend(at(&["mcp"]).map(|map| (Client::Opencode, map))),
    }
    maps.extend(own_of_project(value, origin.project));
    maps
}

/// Claude Code keeps a user's servers for one project in the user's file, under the project's folder.
fn own_of_project<'a>(value: &'a Value, project: Option<&Path>) -> Option<(Client, &'a Map<String, Value>)> {
    let project = project?.to_str()?;
    let map = crate::edit::at(value, &["projects", project, "mcpServers"])?;
    Some((Client::ClaudeCode, map))
}

fn take(
    client: Client,
    original: &str,
    entry: &Value,
    space: Space,
    names: &mut BTreeSet<ServerName>,
) -> Result<Taken, String> {
    let entry = entry.as_object().ok_or("it is no map")?;
    let mut notes = Vec::new();
    let name = respelt(original)?;
    let converted = convert::convert(client, entry, &mut notes)?;
    if names.contains(&name) {
        return Err(format!("there is an MCP server `{name}` already"));
    }
    let mut server = Server::new(name.clone(), space, converted.reach);
    server.description = converted.description;
    server.timeout = converted.timeout.unwrap_or(server.timeout);
    server.start_timeout = converted.start_timeout.unwrap_or(server.start_timeout);
    check_reach(&server.reach)?;
    if name.as_str() != original {
        notes.insert(0, format!("it is called `{name}` here"));
    }
    names.insert(name);
    Ok(Taken { server, original: original.to_owned(), notes })
}

/// A name as servers are called here.
fn respelt(original: &str) -> Result<ServerName, String> {
    let plain = |name: &str| match ServerName::parse(name) {
        Err(ServerNameError::Reserved(name)) => ServerName::parse(&format!("{name}-server")),
        other => other,
    };
    if let Ok(name) = plain(original) {
        return Ok(name);
    }
    let mut name = String::new();
    for c in original.to_lowercase().chars() {
        let c = if c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' { c } else { '-' };
        let is_first = name.is_empty();
        // No dash at the start, none after another, a letter first.
        if (c == '-' && (is_first || name.ends_with('-'))) || (is_first && !c.is_ascii_lowercase()) {
            continue;
        }
        name.push(c);
        if name.len() == 40 {
            break;
        }
    }
    plain(name.trim_end_matches('-'))
        .map_err(|_| "its name has no letters that a name here can have".to_owned())
}
