use kiwi_model::Fault;
use serde_json::json;
use std::process::ExitCode;

use crate::context::Context;
use crate::indexing::Indexing;
use crate::printer::{self, count};

/// Index everything that is not indexed as it is now.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Throw away what there is, and index everything.
    #[arg(long)]
    anew: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Builds.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let warnings = context.kernel.index_build(None, self.anew, &Indexing::default())?;
        warnings.iter().for_each(printer::warning);
        let (states, _) = context.kernel.index_states(None, &Indexing::default())?;
        if self.json {
            printer::json(&json!({"status": "success", "tiers": states, "warnings": warnings}));
        } else {
            for state in states {
                printer::line(format!("{}: {}", state.space, count(state.items, "item")));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
