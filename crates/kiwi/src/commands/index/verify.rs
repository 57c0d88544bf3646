use kiwi_model::Fault;
use serde_json::json;
use std::process::ExitCode;

use crate::context::Context;
use crate::indexing::Indexing;
use crate::printer::{self, mark};

/// Hold the index against its items: every file, every vector, every item.
///
/// Exits with 1 if anything is wrong; `kiwi index build` mends it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Verifies.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let checks = context.kernel.index_verify(None, &Indexing::default())?;
        let is_clean = checks.iter().all(|check| check.faults.is_empty());
        if self.json {
            let status = if is_clean { "success" } else { "error" };
            printer::json(&json!({"status": status, "ok": is_clean, "tiers": checks}));
        } else {
            for check in &checks {
                let is_sound = check.faults.is_empty();
                printer::line(format!("{} {}: {} documents", mark(is_sound), check.space, check.documents));
                check.faults.iter().for_each(|fault| printer::line(format!("  {fault}")));
            }
            if !is_clean {
                printer::note(
                    "`kiwi index build` mends what is damaged and indexes what is missing; with `--anew` everything",
                );
            }
        }
        Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::from(1) })
    }
}
