//! `search`: ranked hits over everything there is.

use kiwi_model::{ErrorKind, Fault, Space};
use rmcp::model::CallToolResult;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::read;
use crate::answer::told;
use crate::catalogue::{Entry, Hit, Kind, rank};
use crate::server::Server;

const MOST: usize = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    query: String,
    #[serde(default)]
    item_type: Option<String>,
    #[serde(default)]
    source: Option<String>,
    #[serde(default)]
    limit: Option<usize>,
}

/// Finds items.
pub(super) async fn search(server: &Server, arguments: Map<String, Value>) -> Result<CallToolResult, Fault> {
    let Arguments { query, item_type, source, limit } = read("search", arguments)?;
    let kinds = kinds(item_type.as_deref())?;
    let space = space_of(source.as_deref())?;
    let limit = limit.unwrap_or(10).clamp(1, MOST);
    let catalogue = server.shelf.fresh().await;
    let is_meant =
        |entry: &Entry| kinds.contains(&entry.kind) && (entry.is_callable() || entry.kind.family() != "tool");
    let hits = match space {
        None => rank(catalogue.visible().filter(|entry| is_meant(entry)), &query, limit),
        Some(space) => {
            let of_space = catalogue.entries.iter().filter(|entry| entry.space == space && is_meant(entry));
            rank(of_space, &query, limit)
        }
    };
    let text = if hits.is_empty() {
        format!("nothing is found for `{query}`; other words, or help(action=\"guidance\", topic=\"tools\")")
    } else {
        hits.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    let results: Vec<Value> = hits.iter().map(shown).collect();
    Ok(told(json!({"status": "success", "count": results.len(), "results": results}), text))
}

fn shown(hit: &Hit) -> Value {
    let Hit { entry, score, why } = hit;
    json!({
        "id": entry.id, "type": entry.kind.as_str(), "version": entry.version,
        "description": entry.description, "parameters": entry.signature,
        "score": score, "source": entry.space.as_str(), "why": why,
    })
}

fn line(hit: &Hit) -> String {
    let Hit { entry, .. } = hit;
    format!("{} {}{} — {}", entry.kind.as_str(), entry.id, entry.signature, entry.description)
}

fn kinds(item_type: Option<&str>) -> Result<Vec<Kind>, Fault> {
    Ok(match item_type {
        None | Some("all") => vec![Kind::Tool, Kind::Mcp, Kind::Directive, Kind::Knowledge],
        Some("tool" | "script") => vec![Kind::Tool, Kind::Mcp],
        Some("mcp") => vec![Kind::Mcp],
        Some("directive") => vec![Kind::Directive],
        Some("knowledge") => vec![Kind::Knowledge],
        Some(other) => return Err(unknown_type(other)),
    })
}

/// A kind of item that there is not.
pub(super) fn unknown_type(item_type: &str) -> Fault {
    let shown: String = item_type.chars().take(60).collect();
    Fault::new(ErrorKind::InvalidParams, format!("`{shown}` is no item_type"))
        .with_hint("one of tool, directive, knowledge, mcp")
}

/// The space a source means; `None`: wherever it is.
pub(super) fn space_of(source: Option<&str>) -> Result<Option<Space>, Fault> {
    match source {
        None | Some("all") => Ok(None),
        Some("project") => Ok(Some(Space::Project)),
        Some("user") => Ok(Some(Space::User)),
        Some("system") => Ok(Some(Space::System)),
        Some("registry") => Err(Fault::new(ErrorKind::MissingRequirement, "no registry is set up here")
            .with_hint("leave `source` out to look in the project, the user space and the system")),
        Some(other) => {
            let shown: String = other.chars().take(60).collect();
            Err(Fault::new(ErrorKind::InvalidParams, format!("`{shown}` is no source"))
                .with_hint("one of project, user, system, registry, all"))
        }
    }
}
