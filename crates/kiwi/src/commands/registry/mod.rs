use kiwi_model::Fault;
use std::process::ExitCode;

use crate::context::Context;

mod namespace;
mod serve;
mod token;
mod whoami;

/// Run a registry, and look after who may do what in it.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Serve(serve::Args),
    Token(token::Args),
    Namespace(namespace::Args),
    Whoami(whoami::Args),
}

impl Args {
    /// Whether standard output must hold one JSON object.
    pub fn json(&self) -> bool {
        match &self.command {
            Command::Serve(args) => args.json,
            Command::Token(args) => args.json(),
            Command::Namespace(args) => args.json(),
            Command::Whoami(args) => args.json,
        }
    }

    /// Runs the inner command.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        match self.command {
            Command::Serve(args) => args.run(context),
            Command::Token(args) => args.run(context),
            Command::Namespace(args) => args.run(context),
            Command::Whoami(args) => args.run(context),
        }
    }
}
