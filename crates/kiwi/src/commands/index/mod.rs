use kiwi_model::Fault;
use std::process::ExitCode;

use crate::context::Context;

mod build;
mod status;
mod verify;

/// Look at the search index, build it, verify it.
///
/// Searching brings the index up to date by itself; nobody has to build one.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Status(status::Args),
    Build(build::Args),
    Verify(verify::Args),
}

impl Args {
    /// Whether standard output must hold one JSON object.
    pub fn json(&self) -> bool {
        match &self.command {
            Command::Status(args) => args.json,
            Command::Build(args) => args.json,
            Command::Verify(args) => args.json,
        }
    }

    /// Runs the inner command.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        match self.command {
            Command::Status(args) => args.run(context),
            Command::Build(args) => args.run(context),
            Command::Verify(args) => args.run(context),
        }
    }
}
