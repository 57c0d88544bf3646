use camino::Utf8PathBuf;
use kiwi_model::Fault;
use serde_json::json;
use std::process::ExitCode;

use crate::context::Context;
use crate::printer::{self, BOLD, DIM, paint};

/// Show rules in the order in which they are asked, and what they look at.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Rule files, or folders of them.
    files: Vec<Utf8PathBuf>,
    /// Only this rule.
    #[arg(long, value_name = "NAME")]
    rule: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Explains.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let registry = super::registry(context, &self.files)?;
        let wanted =
            |rule: &kiwi_rules::RuleSummary| self.rule.as_ref().is_none_or(|name| *name == rule.name);
        let rules: Vec<_> = registry.rules().filter(wanted).collect();
        if let (Some(name), true) = (&self.rule, rules.is_empty()) {
            let known = registry.rules().map(|rule| rule.name).collect::<Vec<_>>().join(", ");
            return Err(Fault::new(kiwi_model::ErrorKind::NotFound, format!("there is no rule `{name}`"))
                .with_hint(format!("there are: {known}")));
        }
        if self.json {
            printer::json(&json!({"status": "success", "rules": rules, "version": registry.version_hash()}));
            return Ok(ExitCode::SUCCESS);
        }
        for (number, rule) in rules.iter().enumerate() {
            let place = paint(DIM, format!("{}:{}", rule.file, rule.line));
            printer::line(format!("{}. {} {place}", number + 1, paint(BOLD, &rule.name)));
            printer::line(paint(
                DIM,
                format!(
                    "   specificity {}, guards: {}, effects: {}",
                    rule.specificity, rule.guards, rule.effects
                ),
            ));
            for line in rule.text.lines() {
                printer::line(format!("   {line}"));
            }
            printer::line("");
        }
        printer::note(
            "any `reject` denies, any `ask` lets a person decide, and at least one rule must admit",
        );
        Ok(ExitCode::SUCCESS)
    }
}
