use kiwi_chain::Difference;
use kiwi_model::{ErrorKind, Explain as _, Fault, Space};
use kiwi_space::LockEntry;
use serde_json::{Value, json};
use std::process::ExitCode;

use super::target::Targets;
use crate::context::Context;
use crate::printer::{self, DIM, count, mark, paint};

/// Say whether the versions in lockfiles are still there, unchanged and valid.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    targets: Targets,
    /// Exit with 3 if one is not.
    #[arg(long)]
    strict: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// What became of one lockfile.
struct Verdict {
    entry: LockEntry,
    differences: Vec<Difference>,
    fault: Option<Fault>,
}

impl Verdict {
    fn is_good(&self) -> bool {
        self.fault.is_none() && self.differences.is_empty()
    }
}

impl Args {
    /// Validates, and notes what was found good.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let entries = self.targets.entries(context)?;
        let mut verdicts = Vec::new();
        for entry in entries {
            let verdict = judge(context, entry)?;
            if !self.json {
                show(&verdict);
            }
            verdicts.push(verdict);
        }
        remember(context, &verdicts);
        Ok(self.conclude(&verdicts))
    }

    fn conclude(&self, verdicts: &[Verdict]) -> ExitCode {
        let bad = verdicts.iter().filter(|verdict| !verdict.is_good()).count();
        let fault = (bad > 0 && self.strict).then(|| {
            Fault::new(
                ErrorKind::LockfileMismatch,
                format!("{bad} of {} do not hold", count(verdicts.len(), "lockfile")),
            )
            .with_hint("bring back what was agreed, or agree to what is here with `kiwi lockfile update`")
        });
        if self.json {
            let lockfiles: Vec<Value> = verdicts.iter().map(data).collect();
            let object = json!({"valid": bad == 0, "checked": verdicts.len(), "lockfiles": lockfiles});
            printer::json(&printer::with_status(object, fault.as_ref()));
        } else {
            printer::note(format!("{} checked, {bad} that do not hold", verdicts.len()));
            if let Some(fault) = &fault {
                printer::fault(fault);
            }
        }
        ExitCode::from(fault.map_or(0, |fault| fault.kind.exit_code()))
    }
}

fn judge(context: &Context, entry: LockEntry) -> Result<Verdict, Fault> {
    if let Some(fault) = entry.problem.clone() {
        return Ok(Verdict { entry, differences: Vec::new(), fault: Some(fault) });
    }
    let judged = match context.kernel.spaces().locks().open(&entry) {
        Ok(stored) => {
            let progress = |line: &str| printer::note(line);
            Context::wait(context.kernel.lockfiles().judge(&stored.lock, &progress))?
        }
        Err(error) => Err(error.fault()),
    };
    let (differences, fault) = match judged {
        Ok(differences) => (differences, None),
        Err(fault) => (Vec::new(), Some(fault)),
    };
    Ok(Verdict { entry, differences, fault })
}

/// The index is a cache, and a store may be read-only: what cannot be noted is no failure.
fn remember(context: &Context, verdicts: &[Verdict]) {
    for scope in [Space::Project, Space::User] {
        let good = verdicts.iter().filter(|verdict| verdict.is_good() && verdict.entry.scope == scope);
        let keys: Vec<&str> = good.map(|verdict| verdict.entry.key.as_str()).collect();
        if !keys.is_empty() {
            let _ = context.kernel.spaces().locks().validated(scope, keys, Context::now());
        }
    }
}

fn data(verdict: &Verdict) -> Value {
    json!({
        "key": verdict.entry.key, "tool_id": verdict.entry.name.tool_id, "version": verdict.entry.name.version,
        "path": verdict.entry.path, "scope": verdict.entry.scope, "valid": verdict.is_good(),
        "differences": verdict.differences, "error": verdict.fault,
    })
}

fn show(verdict: &Verdict) {
    printer::line(format!("{} {}", mark(verdict.is_good()), verdict.entry.key));
    for difference in &verdict.differences {
        printer::line(format!("    {difference}"));
    }
    if let Some(fault) = &verdict.fault {
        printer::line(format!("    {} {}", paint(DIM, fault.kind), fault.message));
        if let Some(hint) = &fault.hint {
            printer::line(format!("    {} {hint}", paint(DIM, "hint:")));
        }
    }
}
