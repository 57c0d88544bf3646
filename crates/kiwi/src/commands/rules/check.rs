use camino::Utf8PathBuf;
use kiwi_model::{ErrorKind, Fault};
use kiwi_rules::RuleSummary;
use serde_json::json;
use std::process::ExitCode;

use crate::context::Context;
use crate::printer::{self, DIM, count, mark, paint};

/// Check that rules can be read, make sense, and hold to their own examples.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Rule files, or folders of them.
    files: Vec<Utf8PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Checks.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let registry = super::registry(context, &self.files)?;
        let rules: Vec<RuleSummary> = registry.rules().collect();
        if let Some((rule, axis)) = rules.iter().find_map(|rule| Some((rule, rule.over_budget?))) {
            let message = format!(
                "{}:{}: the rule `{}` exceeds its budget of {axis} before it begins, and denies every call",
                rule.file, rule.line, rule.name
            );
            return Err(
                Fault::new(ErrorKind::InvalidManifest, message).with_hint("split it into several rules")
            );
        }
        let version = registry.version_hash();
        if self.json {
            printer::json(
                &json!({"status": "success", "rules": rules, "examples": registry.examples(), "version": version}),
            );
        } else {
            printer::line(format!(
                "{} {}, {} hold",
                mark(true),
                count(rules.len(), "rule"),
                count(registry.examples(), "example")
            ));
            printer::note(paint(DIM, version));
            if rules.is_empty() {
                printer::warning("no rule admits anything, so every call is denied");
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
