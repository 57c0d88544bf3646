use kiwi_model::{Explain as _, Fault};
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;

use super::{Scope, list};
use crate::context::Context;
use crate::printer::{self, DIM, count, paint};

const DAY: Duration = Duration::from_hours(24);

/// Remove lockfiles that nobody validated or ran by for long.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many days ago is long.
    #[arg(long, value_name = "DAYS", default_value_t = 90)]
    older_than: u32,
    /// Whose: the project's where there is one, else the user's.
    #[arg(long, value_enum)]
    scope: Option<Scope>,
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
        let scope = Scope::space(self.scope, context);
        let age = DAY * self.older_than;
        let locks = context.kernel.spaces().locks();
        let pruned = locks.prune(scope, age, Context::now(), self.dry_run).map_err(|error| error.fault())?;
        if self.json {
            let pruned: Vec<_> = pruned.iter().map(list::data).collect();
            printer::json(&json!({"status": "success", "dry_run": self.dry_run, "pruned": pruned}));
            return Ok(ExitCode::SUCCESS);
        }
        for entry in &pruned {
            let day = entry.last_validated.get(..10).unwrap_or_default();
            printer::line(format!("{}  {}", entry.key, paint(DIM, format!("last good on {day}"))));
        }
        let what = if self.dry_run { "would be removed" } else { "removed" };
        printer::note(format!("{} {what}", count(pruned.len(), "lockfile")));
        Ok(ExitCode::SUCCESS)
    }
}
