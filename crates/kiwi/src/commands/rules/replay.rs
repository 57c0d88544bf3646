use camino::Utf8PathBuf;
use kiwi_gate::Replayed;
use kiwi_model::Fault;
use serde_json::json;
use std::process::ExitCode;

use crate::context::Context;
use crate::printer::{self, DIM, count, paint};

/// Judge the calls on record by other rules, and show whose answer would change.
///
/// A call whose inputs were left out of the record is undecidable, never guessed.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The other rules: a file, or a folder of them. They are all there are.
    #[arg(long = "rules", value_name = "FILE|DIR", required = true)]
    rules: Vec<Utf8PathBuf>,
    /// Only calls since then: RFC 3339, or a span before now such as `2h` or `7d`.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Replays.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let registry = super::registry(context, &self.rules)?;
        let replayed = context.kernel.rules().replay(&registry, self.since.as_deref())?;
        let undecidable = replayed.iter().filter(|call| call.after.is_none()).count();
        let changed: Vec<&Replayed> = replayed.iter().filter(|call| call.has_changed()).collect();
        if self.json {
            let unknown: Vec<&Replayed> = replayed.iter().filter(|call| call.after.is_none()).collect();
            printer::json(&json!({
                "status": "success", "rules_version": registry.version_hash(), "calls": replayed.len(),
                "unchanged": replayed.len() - changed.len() - undecidable, "changed": changed, "undecidable": unknown,
            }));
            return Ok(ExitCode::SUCCESS);
        }
        let row = |call: &&Replayed| {
            let after = call.after.map(|after| after.to_string()).unwrap_or_default();
            vec![
                paint(DIM, &call.at),
                call.caller.clone(),
                call.tool.clone(),
                format!("{} → {after}", call.before),
                call.why.clone().unwrap_or_default(),
            ]
        };
        printer::table(&changed.iter().map(row).collect::<Vec<_>>());
        printer::note(format!(
            "{}: {} would be answered otherwise, {undecidable} cannot be decided",
            count(replayed.len(), "call"),
            changed.len()
        ));
        Ok(ExitCode::SUCCESS)
    }
}
