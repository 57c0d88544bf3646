use kiwi_gate::{AuditFinding, Verification};
use kiwi_model::{ErrorKind, Fault};
use serde_json::json;
use std::process::ExitCode;

use crate::context::Context;
use crate::printer::{self, count, mark};

/// Check that no record was changed, removed, added or moved.
///
/// Holds every line against the journal, the journal against the head in the user space, and the head against your
/// signature. Exits with 3 and says where, if anything does not hold.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Checks.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let verified = context.kernel.audit()?.verify()?;
        let fault = fault(&verified);
        if self.json {
            printer::json(&printer::with_status(json!(verified), fault.as_ref()));
        } else {
            let Verification { records, files, checkpoints, restored, findings } = &verified;
            for finding in findings {
                printer::line(format!("{} {}", mark(false), sentence(finding)));
            }
            if findings.is_empty() {
                printer::line(format!(
                    "{} {} in {} hold, {} signed",
                    mark(true),
                    count(records, "record"),
                    count(files, "file"),
                    count(checkpoints, "checkpoint")
                ));
            }
            if *restored > 0 {
                printer::note(format!("{restored} lines were put back after a crash"));
            }
        }
        match fault {
            None => Ok(ExitCode::SUCCESS),
            Some(fault) => {
                if !self.json {
                    printer::fault(&fault);
                }
                Ok(ExitCode::from(fault.kind.exit_code()))
            }
        }
    }
}

fn fault(verified: &Verification) -> Option<Fault> {
    let first = verified.findings.first()?;
    let message = match verified.findings.len() {
        1 => format!("the audit log does not hold: {}", sentence(first)),
        many => format!("the audit log does not hold in {many} places, first: {}", sentence(first)),
    };
    Some(
        Fault::new(ErrorKind::IntegrityMismatch, message)
            .with_hint("the guide's page about the audit log says what each finding means, and how to begin a new log")
            .with_details(json!({"findings": verified.findings})),
    )
}

fn sentence(finding: &AuditFinding) -> String {
    match finding.line {
        Some(line) => format!("`{}` line {line}: {}", finding.file, finding.message),
        None => format!("`{}`: {}", finding.file, finding.message),
    }
}
