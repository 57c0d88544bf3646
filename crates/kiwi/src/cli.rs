//! What can be typed. The doc comment of each command is its help text.

use camino::Utf8PathBuf;
use clap::{Parser, Subcommand};

use kiwi_model::Fault;
use std::ffi::OsString;
use std::process::ExitCode;

use crate::commands;
use crate::context::Context;

/// A package manager and governed runtime for the tools that AI agents use.
#[derive(Debug, Parser)]
#[command(name = "kiwi", version, max_term_width = 100, disable_help_subcommand = true)]
pub struct Cli<C: Subcommand = Command> {
    /// Use this folder's `.ai/` instead of the nearest one above.
    #[arg(long, global = true, value_name = "DIR")]
    pub project: Option<Utf8PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub command: C,
}

impl Cli {
    /// Reads what was typed. Where that says `run`, it is first read as if nothing else could be typed: programs do so
    /// once per call, and to know all the other commands takes longer than to read this one. What cannot be understood
    /// so is read once more by who knows everything, and told by it. `help` in front is `--help` behind.
    pub fn read(words: &[OsString]) -> Result<Self, clap::Error> {
        if let [program, help, asked @ ..] = words
            && help == "help"
        {
            let flag = OsString::from("--help");
            return Self::try_parse_from([program].into_iter().chain(asked).chain([&flag]));
        }
        let frequent = words.iter().any(|word| word == "run").then(|| Cli::try_parse_from(words));
        match frequent {
            Some(Ok(Cli { project, command: Frequent::Run(args) })) => {
                Ok(Self { project, command: Command::Run(args) })
            }
            None | Some(Err(_)) => Self::try_parse_from(words),
        }
    }
}

/// What is typed once per call.
#[derive(Debug, Subcommand)]
enum Frequent {
    Run(commands::run::Args),
}

/// The commands, one file each.
#[derive(Debug, Subcommand)]
pub enum Command {
    Init(commands::init::Args),
    Run(commands::run::Args),
    Chain(commands::chain::Args),
    Tool(commands::tool::Args),
    Search(commands::search::Args),
    Index(commands::index::Args),
    Verify(commands::verify::Args),
    #[command(visible_alias = "lock")]
    Lockfile(commands::lockfile::Args),
    Install(commands::install::Args),
    Update(commands::update::Args),
    Uninstall(commands::uninstall::Args),
    Outdated(commands::outdated::Args),
    Publish(commands::publish::Args),
    Yank(commands::yank::Args),
    Login(commands::login::Args),
    Registry(commands::registry::Args),
    Rules(commands::rules::Args),
    Gate(commands::gate::Args),
    Mcp(commands::mcp::Args),
    Trust(commands::trust::Args),
    Approve(commands::approve::Args),
    Reject(commands::reject::Args),
    Reviews(commands::reviews::Args),
    Grants(commands::grants::Args),
    Sessions(commands::sessions::Args),
    Auth(commands::auth::Args),
    Serve(commands::serve::Args),
    Audit(commands::audit::Args),
    Cache(commands::cache::Args),
    Schema(commands::schema::Args),
    Doctor(commands::doctor::Args),
    Demo(commands::demo::Args),
    Completions(commands::completions::Args),
}

impl Command {
    /// Runs a command in its surroundings.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        match self {
            Self::Init(args) => args.run(context),
            Self::Run(args) => args.run(context),
            Self::Chain(args) => args.run(context),
            Self::Tool(args) => args.run(context),
            Self::Search(args) => args.run(context),
            Self::Index(args) => args.run(context),
            Self::Verify(args) => args.run(context),
            Self::Lockfile(args) => args.run(context),
            Self::Install(args) => args.run(context),
            Self::Update(args) => args.run(context),
            Self::Uninstall(args) => args.run(context),
            Self::Outdated(args) => args.run(context),
            Self::Publish(args) => args.run(context),
            Self::Yank(args) => args.run(context),
            Self::Login(args) => args.run(context),
            Self::Registry(args) => args.run(context),
            Self::Rules(args) => args.run(context),
            Self::Gate(args) => args.run(context),
            Self::Mcp(args) => args.run(context),
            Self::Trust(args) => args.run(context),
            Self::Approve(args) => args.run(context),
            Self::Reject(args) => args.run(context),
            Self::Reviews(args) => args.run(context),
            Self::Grants(args) => args.run(context),
            Self::Sessions(args) => args.run(context),
            Self::Auth(args) => args.run(context),
            Self::Serve(args) => args.run(context),
            Self::Audit(args) => args.run(context),
            Self::Cache(args) => args.run(context),
            Self::Doctor(args) => Ok(args.run(context)),
            Self::Schema(args) => Ok(args.run()),
            Self::Completions(args) => Ok(args.run()),
            Self::Demo(_) => commands::demo::run(),
        }
    }

    /// Whether standard output must hold one JSON object, also on failure.
    pub fn json(&self) -> bool {
        match self {
            Self::Run(args) => args.json,
            Self::Chain(args) => args.json,
            Self::Tool(args) => args.json(),
            Self::Search(args) => args.json,
            Self::Index(args) => args.json(),
            Self::Verify(args) => args.json,
            Self::Lockfile(args) => args.json(),
            Self::Install(args) => args.json,
            Self::Update(args) => args.json,
            Self::Uninstall(args) => args.json,
            Self::Outdated(args) => args.json,
            Self::Publish(args) => args.json,
            Self::Yank(args) => args.json,
            Self::Login(args) => args.json,
            Self::Registry(args) => args.json(),
            Self::Rules(args) => args.json(),
            Self::Gate(args) => args.json(),
            Self::Mcp(args) => args.json(),
            Self::Trust(args) => args.json(),
            Self::Approve(args) => args.json,
            Self::Reject(args) => args.json,
            Self::Reviews(args) => args.json,
            Self::Grants(args) => args.json(),
            Self::Sessions(args) => args.json,
            Self::Auth(args) => args.json(),
            Self::Serve(args) => args.json,
            Self::Audit(args) => args.json(),
            Self::Cache(args) => args.json(),
            Self::Doctor(args) => args.json,
            Self::Init(_) | Self::Schema(_) | Self::Demo(_) | Self::Completions(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_alone_is_read_as_by_the_whole() {
        let read = |text: &str| {
            let words: Vec<OsString> = text.split(' ').map(OsString::from).collect();
            let frequent = Cli::<Frequent>::try_parse_from(&words).is_ok();
            let whole = <Cli>::try_parse_from(&words);
            let told = |read: Result<Cli, clap::Error>| {
                read.map(|cli| format!("{cli:?}")).map_err(|error| error.to_string())
            };
            assert_eq!(told(Cli::read(&words)), told(whole), "{text}");
            frequent
        };
        for text in [
            "kiwi run say",
            "kiwi run say text=hi count=2 --json",
            "kiwi --project /tmp run say --locked",
            "kiwi run --project /tmp say --strict --dry-run",
            "kiwi run say --lock warn --wait",
            "kiwi run run",
        ] {
            assert!(read(text), "{text}");
        }
        for text in [
            "kiwi run",
            "kiwi run --help",
            "kiwi run say --locked --lock off",
            "kiwi run say --lock never",
            "kiwi run --no-such-flag say",
            "kiwi search run",
            "kiwi --project run search it",
            "kiwi runs say",
            "kiwi tool list",
            "kiwi",
        ] {
            assert!(!read(text), "{text}");
        }
    }
}
