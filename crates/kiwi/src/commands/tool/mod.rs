use kiwi_model::{Fault, Space};
use kiwi_space::Listed;
use std::process::ExitCode;

use crate::context::Context;

pub mod check;
mod list;
pub mod new;
mod show;
mod sign;

/// Everything in some spaces, nearest first.
pub fn everything(context: &Context, spaces: &[Space]) -> Vec<(Space, Listed)> {
    spaces
        .iter()
        .flat_map(|space| context.kernel.spaces().list(*space).into_iter().map(|listed| (*space, listed)))
        .collect()
}

/// List, show, make, check and sign tools.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    List(list::Args),
    Show(show::Args),
    New(new::Args),
    Check(check::Args),
    Sign(sign::Args),
}

impl Args {
    /// Whether standard output must hold one JSON object.
    pub fn json(&self) -> bool {
        match &self.command {
            Command::List(args) => args.json,
            Command::Show(args) => args.json,
            Command::Check(args) => args.json,
            Command::New(args) => args.json,
            Command::Sign(args) => args.json,
        }
    }

    /// Runs the inner command.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        match self.command {
            Command::List(args) => Ok(args.run(context)),
            Command::Show(args) => args.run(context),
            Command::New(args) => args.run(context),
            Command::Check(args) => Ok(args.run(context)),
            Command::Sign(args) => args.run(context),
        }
    }
}
