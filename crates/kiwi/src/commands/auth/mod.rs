use kiwi_model::Fault;
use std::process::ExitCode;

use crate::context::Context;

mod list;
mod login;
mod remove;
mod set;
mod typed;

pub use typed::secret;

/// Store secrets for tools, get tokens, and forget them.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Set(set::Args),
    Login(login::Args),
    List(list::Args),
    Remove(remove::Args),
}

impl Args {
    /// Whether standard output must hold one JSON object.
    pub fn json(&self) -> bool {
        match &self.command {
            Command::List(args) => args.json,
            Command::Set(_) | Command::Login(_) | Command::Remove(_) => false,
        }
    }

    /// Runs the inner command.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        match self.command {
            Command::Set(args) => args.run(context),
            Command::Login(args) => args.run(context),
            Command::List(args) => args.run(context),
            Command::Remove(args) => args.run(context),
        }
    }
}
