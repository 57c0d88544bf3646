use kiwi_mcp::ServerName;
use kiwi_model::Fault;
use serde_json::{Value, json};
use std::process::ExitCode;

use super::rooms::{self, Asked};
use crate::context::Context;
use crate::printer::{self, BOLD, WARN, count, paint};

/// Ask MCP servers for their tools now, whatever is remembered. What differs from what you agreed to goes into quarantine.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server; all of them by default.
    server: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Asks them, all at once.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let upstreams = context.kernel.upstreams();
        let names: Vec<ServerName> = match &self.server {
            Some(name) => vec![upstreams.server(name).map_err(|error| rooms::fault(&error))?.name.clone()],
            None => upstreams.servers().map_err(|error| rooms::fault(&error))?.keys().cloned().collect(),
        };
        let asked = rooms::refresh(context, names)?;
        let failed = asked.iter().find_map(|(_, page)| page.as_ref().err()).map(rooms::fault);
        if self.json {
            let servers: Vec<Value> = asked.iter().map(object).collect();
            printer::json(&printer::with_status(json!({"servers": servers}), failed.as_ref()));
        } else {
            asked.iter().for_each(show);
        }
        Ok(failed.map_or(ExitCode::SUCCESS, |fault| ExitCode::from(fault.kind.exit_code())))
    }
}

fn show((name, page): &Asked) {
    match page {
        Ok(page) => {
            let waiting = page.waiting().count();
            let tools = format!("{}  {}", paint(BOLD, name), count(page.agreed().count(), "tool"));
            printer::line(match waiting {
                0 => tools,
                _ => format!("{tools}, {}", paint(WARN, format!("{waiting} in quarantine"))),
            });
        }
        Err(error) => {
            let fault = rooms::fault(error);
            printer::fault(&fault);
            let said = fault.details.get("stderr").and_then(Value::as_str).unwrap_or_default();
            for line in said.lines() {
                printer::note(line.escape_debug());
            }
        }
    }
}

fn object((name, page): &Asked) -> Value {
    match page {
        Ok(page) => json!({
            "name": name, "error": null, "agreed": page.agreed().count(), "waiting": page.waiting().count(),
        }),
        Err(error) => json!({"name": name, "error": rooms::fault(error)}),
    }
}
