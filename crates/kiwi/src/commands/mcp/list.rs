use kiwi_mcp::{Page, Reach, Server, Why};
use kiwi_model::{Explain as _, Fault};
use serde_json::{Value, json};
use std::process::ExitCode;

use super::rooms;
use crate::context::Context;
use crate::printer::{self, BAD, BOLD, DIM, WARN, count, paint};

/// List the MCP servers of the project and of the user, and how their tools stand. Nothing is contacted.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Lists them.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let registry = rooms::registry(context);
        let servers = registry.servers().map_err(|error| error.fault())?;
        let shadowed = registry.shadowed().map_err(|error| error.fault())?;
        let all = servers.values().map(|server| (&**server, false));
        let all: Vec<(&Server, bool)> = all.chain(shadowed.iter().map(|server| (server, true))).collect();
        if self.json {
            let rows: Vec<Value> =
                all.iter().map(|(server, hidden)| object(context, server, *hidden)).collect();
            printer::json(&json!({"status": "success", "servers": rows}));
            return Ok(ExitCode::SUCCESS);
        }
        let rows: Vec<Vec<String>> =
            all.iter().map(|(server, hidden)| row(context, server, *hidden)).collect();
        printer::table(&rows);
        if rows.is_empty() {
            printer::note("there are no MCP servers; `kiwi mcp add NAME -- COMMAND` adds one");
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn row(context: &Context, server: &Server, is_shadowed: bool) -> Vec<String> {
    let tools = match rooms::offered(context, server) {
        _ if is_shadowed => paint(DIM, "hidden by the project's"),
        Err(fault) => paint(BAD, fault.message),
        Ok(None) => paint(DIM, "not asked yet"),
        Ok(Some(page)) => match (page.agreed().count(), page.waiting().count()) {
            (agreed, 0) => count(agreed, "tool"),
            (agreed, waiting) => {
                format!("{}, {}", count(agreed, "tool"), paint(WARN, format!("{waiting} in quarantine")))
            }
        },
    };
    vec![paint(BOLD, &server.name), server.space.as_str().to_owned(), reach(server), tools]
}

/// How a server is reached, in one line. Secrets are in variables and headers, which are not shown.
pub fn reach(server: &Server) -> String {
    match &server.reach {
        Reach::Stdio { command, args, .. } => {
            let words = std::iter::once(command).chain(args);
            words.map(|word| word.escape_debug().to_string()).collect::<Vec<_>>().join(" ")
        }
        Reach::Http { url, .. } => url.clone(),
    }
}

/// A server as programs read it.
pub fn object(context: &Context, server: &Server, is_shadowed: bool) -> Value {
    let mut object = json!({
        "name": server.name,
        "space": server.space,
        "shadowed": is_shadowed,
        "description": server.description,
        "isolation": server.isolation,
        "idle_timeout": server.idle_timeout.as_secs(),
        "timeout": server.timeout.as_secs(),
        "start_timeout": server.start_timeout.as_secs(),
        "schema_ttl": server.schema_ttl.as_secs(),
        "trust_annotations": server.trusts_annotations,
        "package": server.package(),
    });
    let reach = match &server.reach {
        Reach::Stdio { command, args, env, cwd } => {
            let env: Vec<&String> = env.keys().collect();
            json!({"type": "stdio", "command": command, "args": args, "env": env, "cwd": cwd})
        }
        Reach::Http { url, headers, auth } => {
            let headers: Vec<&String> = headers.keys().collect();
            json!({"type": "http", "url": url, "headers": headers, "auth": auth})
        }
    };
    let known = match rooms::offered(context, server) {
        Ok(page) => json!({"tools": page.as_deref().map(counts), "problem": null}),
        Err(fault) => json!({"tools": null, "problem": fault}),
    };
    if let Value::Object(map) = &mut object {
        for part in [reach, known] {
            map.extend(part.as_object().cloned().unwrap_or_default());
        }
    }
    object
}

fn counts(page: &Page) -> Value {
    let rejected = page.tools.iter().filter(|noted| noted.why() == Some(&Why::Rejected)).count();
    json!({
        "agreed": page.agreed().count(),
        "waiting": page.waiting().count(),
        "rejected": rejected,
        "listed_at": page.listing.at,
    })
}
