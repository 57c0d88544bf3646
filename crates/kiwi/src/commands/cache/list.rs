use kiwi_model::Fault;
use serde_json::json;
use std::process::ExitCode;

use super::row;
use crate::context::Context;
use crate::printer;

/// List prepared environments, remembered interpreters, built images, files fetched from registries, and what killed calls left
/// behind.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Lists.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let items = Context::wait(context.kernel.cache().list())?;
        if self.json {
            printer::json(&json!({"status": "success", "items": items}));
            return Ok(ExitCode::SUCCESS);
        }
        printer::table(&items.iter().map(row).collect::<Vec<_>>());
        printer::note(format!("{} kept", items.len()));
        Ok(ExitCode::SUCCESS)
    }
}
