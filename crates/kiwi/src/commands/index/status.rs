use kiwi_gate::TierState;
use kiwi_model::Fault;
use serde_json::json;
use std::process::ExitCode;

use crate::context::Context;
use crate::indexing::Indexing;
use crate::printer::{self, DIM, GOOD, WARN, count, paint};

/// Tell how much is indexed, and how much is not yet.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Tells.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let (states, warnings) = context.kernel.index_states(None, &Indexing::default())?;
        warnings.iter().for_each(printer::warning);
        if self.json {
            let wanted = context.kernel.embedder()?;
            let answer =
                json!({"status": "success", "embedder": wanted, "tiers": states, "warnings": warnings});
            printer::json(&answer);
        } else {
            printer::table(&states.iter().map(|state| row(context, state)).collect::<Vec<_>>());
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn row(context: &Context, state: &TierState) -> Vec<String> {
    let standing = match state {
        TierState { folder: None, .. } => paint(GOOD, "in memory"),
        TierState { complete: false, items: 0, .. } => paint(WARN, "not built"),
        TierState { behind: 0, complete: true, .. } => paint(GOOD, "up to date"),
        TierState { behind, .. } => paint(WARN, format!("{behind} to index")),
    };
    let refused = match state.refused {
        0 => String::new(),
        count => format!("{count} not valid"),
    };
    vec![
        state.space.to_string(),
        count(state.items, "item"),
        standing,
        refused,
        state.embedder.clone(),
        paint(DIM, state.folder.as_ref().map(|folder| context.shown(folder)).unwrap_or_default()),
    ]
}
