use kiwi_mcp::{Noted, Page, Server};
use kiwi_model::Fault;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::sync::Arc;

use super::rooms;
use crate::context::Context;
use crate::printer::{self, BOLD, DIM, WARN, paint};

/// List the tools of MCP servers, as far as they are known. A server that was named and never asked is asked now.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server; all of them by default.
    server: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Lists them.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let upstreams = context.kernel.upstreams();
        let servers: Vec<Arc<Server>> = match &self.server {
            Some(name) => vec![upstreams.server(name).map_err(|error| rooms::fault(&error))?],
            None => upstreams.servers().map_err(|error| rooms::fault(&error))?.values().cloned().collect(),
        };
        let mut known: Vec<(Arc<Server>, Arc<Page>)> = Vec::new();
        for server in servers {
            match rooms::offered(context, &server)? {
                Some(page) => known.push((server, page)),
                None if self.server.is_some() => {
                    let asked = rooms::refresh(context, vec![server.name.clone()])?;
                    for (_, page) in asked {
                        known.push((server.clone(), page.map_err(|error| rooms::fault(&error))?));
                    }
                }
                None => {}
            }
        }
        let tools: Vec<(&Arc<Server>, &Noted)> = known
            .iter()
            .flat_map(|(server, page)| page.tools.iter().map(move |noted| (server, noted)))
            .collect();
        if self.json {
            let tools: Vec<Value> = tools.iter().map(|(server, noted)| object(server, noted)).collect();
            printer::json(&json!({"status": "success", "tools": tools}));
            return Ok(ExitCode::SUCCESS);
        }
        printer::table(&tools.iter().map(|(server, noted)| row(server, noted)).collect::<Vec<_>>());
        if tools.is_empty() {
            printer::note("no tools are known; `kiwi mcp refresh` asks every server");
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn id(server: &Server, noted: &Noted) -> String {
    format!("{}.{}", server.name, noted.name().escape_debug())
}

fn row(server: &Server, noted: &Noted) -> Vec<String> {
    let about =
        noted.definition.description.as_deref().and_then(|text| text.lines().next()).unwrap_or_default();
    let about = if noted.is_agreed() {
        // What a server says is shown to a person: no control characters.
        about.escape_debug().to_string()
    } else {
        paint(WARN, format!("in quarantine: {}", noted.sentence()))
    };
    let style = if noted.is_agreed() { BOLD } else { DIM };
    vec![paint(style, id(server, noted)), about]
}

fn object(server: &Server, noted: &Noted) -> Value {
    json!({
        "id": id(server, noted),
        "server": server.name,
        "standing": if noted.is_agreed() { "agreed" } else { "quarantined" },
        "why": noted.why().map(kiwi_mcp::Why::word),
        "definition": noted.definition,
    })
}
