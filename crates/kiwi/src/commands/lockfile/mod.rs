use kiwi_model::{Fault, Space};
use kiwi_space::LockEntry;
use std::process::ExitCode;

use crate::context::Context;
use crate::printer;

mod diff;
mod freeze;
mod git;
mod list;
mod prune;
mod sync;
mod target;
mod update;
mod validate;

/// Freeze chains, and keep what was agreed: without a command, `kiwi lock TOOL` freezes.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    freeze: freeze::Args,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Freeze(freeze::Args),
    Validate(validate::Args),
    List(list::Args),
    Prune(prune::Args),
    Diff(diff::Args),
    Update(update::Args),
    Push(sync::Push),
    Pull(sync::Pull),
}

impl Args {
    /// Whether standard output must hold one JSON object.
    pub fn json(&self) -> bool {
        match &self.command {
            None => self.freeze.json,
            Some(Command::Freeze(args)) => args.json,
            Some(Command::Validate(args)) => args.json,
            Some(Command::List(args)) => args.json,
            Some(Command::Prune(args)) => args.json,
            Some(Command::Diff(args)) => args.json,
            Some(Command::Update(args)) => args.json,
            Some(Command::Push(args)) => args.json(),
            Some(Command::Pull(args)) => args.json(),
        }
    }

    /// Runs the inner command.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        match self.command.unwrap_or(Command::Freeze(self.freeze)) {
            Command::Freeze(args) => args.run(context),
            Command::Validate(args) => args.run(context),
            Command::List(args) => args.run(context),
            Command::Prune(args) => args.run(context),
            Command::Diff(args) => args.run(context),
            Command::Update(args) => args.run(context),
            Command::Push(args) => args.run(context),
            Command::Pull(args) => args.run(context),
        }
    }
}

/// Whose lockfiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Scope {
    /// Those of the project, shared by its team.
    Project,
    /// Those of this user.
    User,
}

impl Scope {
    /// The space: the one that was named, else the project's where there is one.
    pub fn space(chosen: Option<Self>, context: &Context) -> Space {
        match chosen {
            Some(Self::Project) => Space::Project,
            None if context.kernel.spaces().project_root().is_some() => Space::Project,
            Some(Self::User) | None => Space::User,
        }
    }
}

/// The lockfiles of every scope there is, the one that wins first; files that have to be read are counted aloud.
fn everywhere(context: &Context, category: Option<&str>) -> Result<impl Iterator<Item = LockEntry>, Fault> {
    let spaces = context.kernel.spaces();
    let scopes = [(Space::Project, spaces.project_root()), (Space::User, spaces.user_root())];
    let mut all = Vec::new();
    for (scope, _) in scopes.into_iter().filter(|(_, root)| root.is_some()) {
        let mut counter = printer::Counter::new("reading lockfiles");
        let entries = spaces.locks().entries(scope, category, &mut |done, total| counter.show(done, total));
        all.push(entries.map_err(|error| kiwi_model::Explain::fault(&error))?);
    }
    Ok(all.into_iter().flatten())
}
