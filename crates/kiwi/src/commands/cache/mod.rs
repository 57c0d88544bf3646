use kiwi_gate::CacheItem;
use kiwi_model::Fault;
use std::process::ExitCode;

use crate::context::Context;
use crate::printer::{DIM, paint};

mod list;
mod prune;

/// Show what is kept to be faster, and remove what nobody uses.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    List(list::Args),
    Prune(prune::Args),
}

impl Args {
    /// Whether standard output must hold one JSON object.
    pub fn json(&self) -> bool {
        match &self.command {
            Command::List(args) => args.json,
            Command::Prune(args) => args.json,
        }
    }

    /// Runs the inner command.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        match self.command {
            Command::List(args) => args.run(context),
            Command::Prune(args) => args.run(context),
        }
    }
}

/// One line of a table.
fn row(item: &CacheItem) -> Vec<String> {
    let kind = serde_json::to_value(item.kind).ok().and_then(|kind| kind.as_str().map(str::to_owned));
    let day = item.last_used.as_deref().and_then(|time| time.get(..10)).unwrap_or("unknown");
    let used = if item.in_use { "in use".to_owned() } else { paint(DIM, format!("last used {day}")) };
    vec![
        kind.unwrap_or_default(),
        item.name.clone(),
        item.size.map(size).unwrap_or_default(),
        used,
        item.detail.clone(),
    ]
}

/// Bytes for people.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        1_000_000..1_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{} GB", bytes / 1_000_000_000),
    }
}
