use kiwi_gate::{Answer, Undone, Verdict};
use kiwi_model::{ErrorKind, Fault};
use serde_json::json;
use std::process::ExitCode;

use super::reviews;
use crate::context::Context;
use crate::printer;

/// Say no to a call that waits, to a question, or to a session that is stuck.
///
/// A request whose file cannot be read is removed.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which one: its name in `kiwi reviews`, or the beginning of it.
    id: String,
    /// Why; whoever asked is told.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Rejects.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let (now, by) = (reviews::now()?, context.caller().as_str().to_owned());
        let answer = Answer { by: by.clone(), reason: self.reason.clone(), option: None, remember: None };
        match context.kernel.approvals()?.reject(&self.id, answer, now) {
            Ok(undone) => self.tell(&undone),
            Err(fault) if fault.kind == ErrorKind::NotFound => {
                let reason = self.reason.as_deref();
                reviews::answer_stuck(context, &self.id, Verdict::Rejected, &by, reason, self.json)?;
            }
            Err(fault) => return Err(fault),
        }
        Ok(ExitCode::SUCCESS)
    }

    fn tell(&self, undone: &Undone) {
        match undone {
            Undone::Rejected(approval) if self.json => {
                printer::json(&json!({"status": "success", "approval": approval}));
            }
            Undone::Removed { id, why } if self.json => {
                printer::json(&json!({"status": "success", "removed": id, "problem": why}));
            }
            Undone::Rejected(approval) => {
                let about =
                    approval.tool.as_ref().map_or("the question".to_owned(), |tool| format!("`{tool}`"));
                printer::note(format!("rejected `{}`: {about} of `{}`", approval.id, approval.caller));
            }
            Undone::Removed { id, why } => {
                printer::note(format!("removed `{id}`, which cannot be read: {why}"));
            }
        }
    }
}
