//! `search`: ranked hits over everything there is.

use kiwi_gate::{Asker, FoundItem, Hurried, Search, Source};
use kiwi_model::{ErrorKind, Fault, Space};
use kiwi_search::{Filter, Kind, Mode, summary};
use kiwi_space::Transport;
use rmcp::model::CallToolResult;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

use super::read;
use crate::answer::told;
use crate::client::Client;
use crate::server::Server;

const MOST: u8 = 100;
const USUAL: usize = 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    query: String,
    #[serde(default)]
    item_type: Option<String>,
    #[serde(default)]
    source: Option<String>,
    #[serde(default)]
    category: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    tool_type: Option<String>,
    #[serde(default)]
    limit: Option<Value>,
}

/// Finds items.
pub(super) async fn search(
    server: &Server,
    client: &Client,
    arguments: Map<String, Value>,
) -> Result<CallToolResult, Fault> {
    let Arguments { query, item_type, source, category, tags, tool_type, limit } = read("search", arguments)?;
    let search = Search {
        text: query.clone(),
        filter: Filter { kinds: kinds(item_type.as_deref())?, category, tags, tool_type },
        source: source_of(source.as_deref())?,
        limit: limit.as_ref().map_or(Ok(USUAL), wanted)?,
        mode: Mode::default(),
    };
    let asker = Asker { transport: Transport::Mcp, narrower: None, session: client.session };
    let kernel = Arc::clone(&server.kernel);
    let found = tokio::task::spawn_blocking(move || kernel.search(&search, &asker, &Hurried)).await;
    let found = found.map_err(|error| Fault::new(ErrorKind::Internal, format!("search: {error}")))??;
    let text = if found.hits.is_empty() {
        format!("nothing is found for `{query}`; other words, or help(action=\"guidance\", topic=\"tools\")")
    } else {
        found.hits.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    let results: Vec<Value> = found.hits.iter().map(shown).collect();
    let mut answer = json!({"status": "success", "count": results.len(), "results": results});
    if let (Value::Object(map), false) = (&mut answer, found.warnings.is_empty()) {
        map.insert("warnings".into(), json!(found.warnings));
    }
    Ok(told(answer, text))
}

/// How many hits are wanted.
fn wanted(limit: &Value) -> Result<usize, Fault> {
    (1..=MOST).find(|number| limit.as_f64() == Some(f64::from(*number))).map(usize::from).ok_or_else(|| {
        let message = format!("search: `limit` must be a whole number from 1 to {MOST}");
        Fault::new(ErrorKind::InvalidParams, message)
    })
}

fn shown(found: &FoundItem) -> Value {
    let item = &found.hit.item;
    json!({
        "id": item.id, "type": item.kind.as_str(), "version": item.version,
        "description": summary(&item.description), "parameters": item.signature,
        "score": (f64::from(found.hit.score) * 1000.0).round() / 1000.0,
        "source": found.source.as_str(), "why": found.hit.why,
    })
}

fn line(found: &FoundItem) -> String {
    let item = &found.hit.item;
    format!("{} {}{} — {}", item.kind.as_str(), item.id, item.signature, summary(&item.description))
}

fn kinds(item_type: Option<&str>) -> Result<Vec<Kind>, Fault> {
    Ok(match item_type {
        None | Some("all") => Vec::new(),
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

/// Where a source is; `None`: everywhere.
fn source_of(source: Option<&str>) -> Result<Option<Source>, Fault> {
    match source {
        Some("registry") => Ok(Some(Source::Registry)),
        other => Ok(space_of(other)?.map(Source::Space)),
    }
}

/// The space a source means; `None`: wherever it is.
pub(super) fn space_of(source: Option<&str>) -> Result<Option<Space>, Fault> {
    match source {
        None | Some("all") => Ok(None),
        Some("project") => Ok(Some(Space::Project)),
        Some("user") => Ok(Some(Space::User)),
        Some("system") => Ok(Some(Space::System)),
        Some("registry") => {
            Err(Fault::new(ErrorKind::MissingRequirement, "what a registry has is not here yet")
                .with_hint("`kiwi install` brings it into the project or the user space"))
        }
        Some(other) => {
            let shown: String = other.chars().take(60).collect();
            Err(Fault::new(ErrorKind::InvalidParams, format!("`{shown}` is no source"))
                .with_hint("one of project, user, system, registry, all"))
        }
    }
}
