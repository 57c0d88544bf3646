use kiwi_model::Fault;
use std::process::ExitCode;

use crate::commands::run;
use crate::context::Context;

/// Call a tool of an MCP server: the same as `kiwi run SERVER.TOOL`, through the same gate.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// The server.
    server: String,
    #[command(flatten)]
    run: run::Args,
}

impl Args {
    /// Whether standard output must hold one JSON object.
    pub fn json(&self) -> bool {
        self.run.json
    }

    /// Makes the call.
    pub fn run(mut self, context: &Context) -> Result<ExitCode, Fault> {
        context.kernel.upstreams().server(&self.server).map_err(|error| super::rooms::fault(&error))?;
        self.run.of_server(&self.server);
        self.run.run(context)
    }
}
