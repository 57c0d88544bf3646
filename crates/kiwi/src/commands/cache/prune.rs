use kiwi_model::Fault;
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;

use super::row;
use crate::context::Context;
use crate::printer;

const DAY: Duration = Duration::from_hours(24);

/// Remove what was not used for long, what was never finished, and what killed calls left behind.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many days without use is long.
    #[arg(long, value_name = "DAYS", default_value_t = 30)]
    older_than: u32,
    /// Show what would go, and keep it.
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Prunes.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let cache = context.kernel.cache();
        let pruned = Context::wait(cache.prune(DAY * self.older_than, Context::now(), self.dry_run))??;
        if self.json {
            printer::json(&json!({"status": "success", "dry_run": self.dry_run, "pruned": pruned}));
            return Ok(ExitCode::SUCCESS);
        }
        printer::table(&pruned.iter().map(row).collect::<Vec<_>>());
        let what = if self.dry_run { "would be removed" } else { "removed" };
        printer::note(format!("{} {what}", pruned.len()));
        Ok(ExitCode::SUCCESS)
    }
}
