use kiwi_gate::{AuditCall, CallState};
use kiwi_model::Fault;
use serde_json::{Value, json};
use std::process::ExitCode;

use super::{row, warn};
use crate::context::Context;
use crate::printer;

/// List calls that began and of whose end there is no record.
///
/// They are still running, or Kiwi or the machine was stopped while they were: whether they had an effect is unknown.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Lists.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let audit = context.kernel.audit()?;
        let mut calls = audit.calls()?;
        warn(&audit);
        calls.retain(|call| call.state() == CallState::Unknown);
        if self.json {
            printer::json_list("unfinished", calls.iter().map(data));
        } else {
            printer::table(&calls.iter().map(|call| row(&call.first)).collect::<Vec<_>>());
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn data(call: &AuditCall) -> Value {
    let (line, record) = (call.line(), &call.line().record);
    json!({
        "state": call.state(), "call": call.id(), "session": record.session, "caller": record.caller,
        "tool": record.tool, "version": record.version, "integrity": record.integrity, "at": record.at,
        "params_hash": record.params_hash, "file": call.first.file, "line": line.seq, "hash": line.hash,
    })
}
