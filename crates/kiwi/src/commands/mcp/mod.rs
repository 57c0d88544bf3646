use kiwi_model::Fault;
use std::process::ExitCode;

use crate::context::Context;

mod add;
mod call;
mod import;
mod install;
mod list;
mod login;
mod question;
mod refresh;
mod remove;
mod review;
mod rooms;
mod stdio;
mod tools;

/// Serve MCP over standard input and output, for the client that started this command.
///
/// Four tools stand in front of everything: search, load, execute and help. With a command of its own, use other MCP
/// servers as tools, or have other programs use Kiwi as one.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<McpCommand>,
    #[command(flatten)]
    serve: stdio::StdioArgs,
}

#[derive(Debug, clap::Subcommand)]
enum McpCommand {
    List(list::Args),
    Add(add::Args),
    Remove(remove::Args),
    Tools(tools::Args),
    Call(call::Args),
    Refresh(refresh::Args),
    Review(review::Args),
    Login(login::Args),
    Import(import::Args),
    Install(install::Args),
}

impl Args {
    /// Whether standard output must hold one JSON object.
    pub fn json(&self) -> bool {
        match &self.command {
            Some(McpCommand::List(args)) => args.json,
            Some(McpCommand::Add(args)) => args.json,
            Some(McpCommand::Remove(args)) => args.json,
            Some(McpCommand::Tools(args)) => args.json,
            Some(McpCommand::Call(args)) => args.json(),
            Some(McpCommand::Refresh(args)) => args.json,
            Some(McpCommand::Review(args)) => args.json,
            Some(McpCommand::Import(args)) => args.json,
            Some(McpCommand::Install(args)) => args.json,
            Some(McpCommand::Login(_)) | None => false,
        }
    }

    /// Runs the inner command; without one, serves.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        match self.command {
            Some(McpCommand::List(args)) => args.run(context),
            Some(McpCommand::Add(args)) => args.run(context),
            Some(McpCommand::Remove(args)) => args.run(context),
            Some(McpCommand::Tools(args)) => args.run(context),
            Some(McpCommand::Call(args)) => args.run(context),
            Some(McpCommand::Refresh(args)) => args.run(context),
            Some(McpCommand::Review(args)) => args.run(context),
            Some(McpCommand::Login(args)) => args.run(context),
            Some(McpCommand::Import(args)) => args.run(context),
            Some(McpCommand::Install(args)) => args.run(context),
            None => self.serve.run(context),
        }
    }
}
