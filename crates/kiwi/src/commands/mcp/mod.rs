use kiwi_model::Fault;
use std::process::ExitCode;

use crate::context::Context;

mod stdio;

/// Serve MCP over standard input and output, for the client that started this command.
///
/// Four tools stand in front of everything: search, load, execute and help.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    serve: stdio::StdioArgs,
}

impl Args {
    /// Runs the command.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        self.serve.run(context)
    }
}
