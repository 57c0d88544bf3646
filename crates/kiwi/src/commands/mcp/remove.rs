use kiwi_mcp::ServerName;
use kiwi_model::{ErrorKind, Explain as _, Fault, Space};
use serde_json::json;
use std::process::ExitCode;

use super::rooms;
use crate::context::Context;
use crate::printer::{self, BOLD, paint};

/// Remove an MCP server, and forget what was agreed about its tools.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Its name.
    name: String,
    /// Remove it from the user's file, also where the project names one as well.
    #[arg(long)]
    user: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Removes it.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let registry = rooms::registry(context);
        let name = ServerName::parse(&self.name).map_err(|error| {
            Fault::new(ErrorKind::Usage, error.to_string()).with_hint("`kiwi mcp list` lists them")
        })?;
        let is_named = |space| registry.of(space).map(|servers| servers.contains_key(&name));
        let in_project = !self.user && is_named(Space::Project).map_err(|error| error.fault())?;
        let space = if in_project { Space::Project } else { Space::User };
        rooms::change(context, space, || {
            let server = registry.remove(space, &name)?;
            rooms::book(context).forget(&server).map(|_| ())
        })?;
        let file = registry.file(space);
        if self.json {
            printer::json(&json!({"status": "success", "name": name, "space": space, "file": file}));
        } else {
            let shown = file.map(|file| context.shown(&file)).unwrap_or_default();
            printer::note(format!("removed {} from {shown}", paint(BOLD, &name)));
        }
        Ok(ExitCode::SUCCESS)
    }
}
