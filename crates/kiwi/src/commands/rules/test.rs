use camino::Utf8PathBuf;
use kiwi_model::Fault;
use serde_json::json;
use std::process::ExitCode;

use crate::context::Context;
use crate::printer::{self, DIM, mark, paint};

/// Hold rules against the examples that they carry.
///
/// One that does not hold is shown with its place; rules with such an example never come into force.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Rule files, or folders of them.
    files: Vec<Utf8PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Tests.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let registry = super::registry(context, &self.files)?;
        let rules: Vec<_> = registry.rules().collect();
        let bare: Vec<&str> =
            rules.iter().filter(|rule| rule.examples == 0).map(|rule| rule.name.as_str()).collect();
        if self.json {
            printer::json(&json!({
                "status": "success", "passed": registry.examples(), "failed": 0, "without_examples": bare,
            }));
            return Ok(ExitCode::SUCCESS);
        }
        let row = |rule: &kiwi_rules::RuleSummary| {
            let count = match rule.examples {
                0 => paint(DIM, "no examples"),
                count => format!("{count} hold"),
            };
            vec![mark(true), rule.name.clone(), count, paint(DIM, format!("{}:{}", rule.file, rule.line))]
        };
        printer::table(&rules.iter().map(row).collect::<Vec<_>>());
        printer::note(format!("{} examples hold", registry.examples()));
        Ok(ExitCode::SUCCESS)
    }
}
