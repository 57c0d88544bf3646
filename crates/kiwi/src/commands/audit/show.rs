use kiwi_model::Fault;
use std::process::ExitCode;

use super::{data, warn};
use crate::context::Context;
use crate::printer;

/// Show every record of a session, or of one call.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The id of a session or a call, or the hash of a record; a beginning of eight characters
    /// or more will do where it is the beginning of one.
    #[arg(value_name = "SESSION|CALL")]
    what: String,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Shows.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let audit = context.kernel.audit()?;
        let lines = audit.show(&self.what)?;
        warn(&audit);
        if self.json {
            printer::json_list("records", lines.iter().map(data));
            return Ok(ExitCode::SUCCESS);
        }
        for line in &lines {
            printer::json(&data(line));
        }
        Ok(ExitCode::SUCCESS)
    }
}
