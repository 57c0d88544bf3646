use kiwi_model::Fault;
use kiwi_space::LockEntry;
use serde_json::json;
use std::process::ExitCode;

use super::everywhere;
use crate::context::Context;
use crate::printer::{self, BAD, DIM, count, paint};

/// List lockfiles: which tool and chain, and when it was last known to be good.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only those of this category, and of those below it.
    #[arg(long, short, value_name = "CATEGORY")]
    category: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Lists, row by row as they come.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let entries = everywhere(context, self.category.as_deref())?;
        if self.json {
            printer::json_list("lockfiles", entries.map(|entry| data(&entry)));
            return Ok(ExitCode::SUCCESS);
        }
        let listed = printer::lines(entries.map(|entry| row(&entry)));
        printer::note(count(listed, "lockfile"));
        Ok(ExitCode::SUCCESS)
    }
}

/// A lockfile as programs see it: what the index says, under its key.
pub fn data(entry: &LockEntry) -> serde_json::Value {
    json!({
        "key": entry.key, "tool_id": entry.name.tool_id, "version": entry.name.version, "category": entry.category,
        "alternative": entry.name.alternative.is_some(), "path": entry.path, "chain_hash": entry.chain_hash,
        "created_at": entry.created_at, "last_validated": entry.last_validated, "scope": entry.scope,
        "ok": entry.problem.is_none(), "error": entry.problem,
    })
}

fn row(entry: &LockEntry) -> String {
    let name = format!("{:<44}", entry.key);
    let Some(problem) = &entry.problem else {
        let day = entry.last_validated.get(..10).unwrap_or_default();
        let good = paint(DIM, format!("good on {day}"));
        return format!("{name}  {:<7}  {:<12}  {good}", entry.scope, entry.chain_hash);
    };
    format!("{name}  {:<7}  {} {}", entry.scope, paint(BAD, problem.kind), problem.message)
}
