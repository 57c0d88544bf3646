use kiwi_chain::{Plan, Tool};
use kiwi_gate::{Agreement, Planned};
use kiwi_model::lockfile::LockMode;
use kiwi_model::{Fault, ToolRef};
use serde_json::{Value, json};
use std::process::ExitCode;

use crate::context::Context;
use crate::printer::{self, BOLD, DIM, mark, paint};

/// Show the chain a tool runs through: every link's version, space and identity, and the verdict on it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The tool, and after `@` the versions that will do.
    tool: String,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Shows the chain; an invalid one is shown whole before it is refused.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let planned =
            Context::wait(context.kernel.looked_over(&ToolRef::parse(&self.tool)?, Some(LockMode::Warn)))??;
        let plan = &planned.plan;
        let fault = planned.require().err();
        let mut warnings = planned.warnings();
        warnings.extend(plan.tools().iter().flat_map(|tool| shadowing(context, tool)));
        if self.json {
            let report = plan.report();
            let object = json!({
                "chain": plan.links(),
                "chain_hash": plan.chain_hash(),
                "valid": fault.is_none(),
                "issues": issues(plan, fault.as_ref()),
                "warnings": warnings,
                "validated_pairs": report.validated_pairs,
                "lockfile": planned.lock.as_ref().map(lockfile),
                "config": config(plan),
            });
            printer::json(&printer::with_status(object, fault.as_ref()));
        } else {
            show(context, &planned);
            for warning in &warnings {
                printer::warning(warning);
            }
            if let Some(fault) = &fault {
                printer::fault(fault);
            }
        }
        Ok(ExitCode::from(fault.map_or(0, |fault| fault.kind.exit_code())))
    }
}

/// Everything that speaks against the chain, of whatever stage.
fn issues(plan: &Plan, fault: Option<&Fault>) -> Vec<String> {
    let mut issues: Vec<String> = plan.mismatches().iter().map(ToString::to_string).collect();
    issues.extend(plan.report().issues.iter().cloned());
    if issues.is_empty() {
        issues.extend(fault.map(|fault| fault.message.clone()));
    }
    issues
}

/// The lockfile the chain was held against.
fn lockfile(lock: &Agreement) -> Value {
    json!({"path": lock.stored.path, "scope": lock.stored.scope, "differences": lock.differences})
}

fn config(plan: &Plan) -> Value {
    plan.merged().map_or(Value::Null, kiwi_chain::Merged::config)
}

/// What this tool hides in other spaces.
pub fn shadowing(context: &Context, tool: &Tool) -> Vec<String> {
    let hidden = context.kernel.spaces().shadowed(tool);
    hidden
        .iter()
        .map(|other| {
            format!(
                "`{}` of the {} space shadows {} of the {} space",
                tool.name(),
                tool.space,
                other.version,
                other.space
            )
        })
        .collect()
}

fn show(context: &Context, planned: &Planned) {
    let plan = &planned.plan;
    if let Some(leaf) = plan.tools().first() {
        let about = leaf
            .manifest
            .description
            .as_ref()
            .map(|text| format!("  {}", paint(DIM, text)))
            .unwrap_or_default();
        printer::line(format!("{}{about}\n", paint(BOLD, leaf.name())));
    }
    let broken: Vec<&str> = plan.mismatches().iter().map(|mismatch| mismatch.tool.as_str()).collect();
    let accepted = plan.report().accepted.iter().copied().chain(std::iter::repeat(true));
    let rows: Vec<Vec<String>> = plan
        .tools()
        .iter()
        .zip(accepted)
        .map(|(tool, accepted)| {
            vec![
                mark(accepted && !broken.contains(&tool.name().as_str())),
                tool.manifest.tool_id.to_string(),
                tool.manifest.version.to_string(),
                tool.manifest.tool_type.clone(),
                tool.space.to_string(),
                paint(DIM, tool.integrity.short()),
            ]
        })
        .collect();
    printer::table(&rows);
    if let Value::Object(config) = config(plan) {
        printer::line("");
        let rows: Vec<Vec<String>> =
            config.iter().map(|(key, value)| vec![paint(DIM, key), flat(value)]).collect();
        printer::table(&rows);
    }
    printer::line(format!("\n  {} {}", paint(DIM, "chain"), plan.chain_hash()));
    if let Some(lock) = &planned.lock {
        let verdict = mark(lock.differences.is_empty());
        printer::line(format!("  {} {} {verdict}", paint(DIM, "lock "), context.shown(&lock.stored.path)));
    }
}

/// A value on one line, strings without their quotes.
fn flat(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(flat).collect::<Vec<_>>().join(" "),
        Value::Object(map) => {
            map.iter().map(|(key, value)| format!("{key}={}", flat(value))).collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    }
}
