use kiwi_chain::Tool;
use kiwi_gate::Finding;
use kiwi_model::{ErrorKind, Fault, Space, ToolRef};
use serde::Serialize;
use serde_json::json;
use std::process::ExitCode;
use std::sync::Arc;

use super::everything;
use crate::context::Context;
use crate::printer::{self, DIM, mark, paint};

/// Say everything that is wrong with tools: manifest, chain, syntax, request, image, requirements.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which tools; every tool of the project and the user space by default.
    tools: Vec<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// One checked tool.
#[derive(Debug, Serialize)]
pub struct Item {
    tool_id: String,
    version: Option<String>,
    ok: bool,
    issues: Vec<Finding>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

impl Item {
    /// A tool that could be read, and what is wrong with it.
    pub fn of(tool: &Tool, issues: impl IntoIterator<Item = Finding>) -> Self {
        let issues: Vec<Finding> = issues.into_iter().collect();
        Self {
            tool_id: tool.manifest.tool_id.to_string(),
            version: Some(tool.manifest.version.to_string()),
            ok: issues.is_empty(),
            issues,
            warnings: tool.warnings.clone(),
        }
    }

    /// A tool that could not be read.
    pub fn unreadable(name: &str, fault: &Fault, path: &str) -> Self {
        Self {
            tool_id: name.to_owned(),
            version: None,
            ok: false,
            issues: Finding::all(fault.clone(), path),
            warnings: Vec::new(),
        }
    }
}

impl Args {
    /// Checks.
    pub fn run(self, context: &Context) -> ExitCode {
        let items: Vec<Item> = if self.tools.is_empty() {
            everything(context, &[Space::Project, Space::User])
                .into_iter()
                .map(|(_, listed)| match &listed.result {
                    Ok(tool) => check(context, tool),
                    Err(fault) => Item::unreadable(&listed.id_hint, fault, &listed.path),
                })
                .collect()
        } else {
            self.tools.iter().map(|name| named(context, name)).collect()
        };
        conclude(&items, self.json)
    }
}

fn named(context: &Context, name: &str) -> Item {
    let plan = ToolRef::parse(name).and_then(|ask| context.kernel.plan(&ask));
    match plan {
        Ok(plan) => match plan.tools().first() {
            Some(tool) => check(context, tool),
            None => Item::unreadable(name, &Fault::new(ErrorKind::Internal, "the chain is empty"), ""),
        },
        Err(fault) => Item::unreadable(name, &fault, ""),
    }
}

fn check(context: &Context, tool: &Arc<Tool>) -> Item {
    let findings = Context::wait(context.kernel.check(tool));
    let item = Item::of(tool, findings.unwrap_or_else(|fault| Finding::all(fault, &tool.path)));
    // A chain has more to say than its first link alone.
    let ask = ToolRef::exactly(tool.manifest.tool_id.clone(), &tool.manifest.version);
    match context.kernel.plan(&ask) {
        Ok(plan) => Item { warnings: plan.warnings(), ..item },
        Err(_) => item,
    }
}

/// Prints the verdict on some items and turns it into an exit code.
pub fn conclude(items: &[Item], json: bool) -> ExitCode {
    let worst =
        items.iter().flat_map(|item| &item.issues).map(|issue| issue.kind.exit_code()).max().unwrap_or(0);
    if json {
        let first = items.iter().flat_map(|item| &item.issues).find(|issue| issue.kind.exit_code() == worst);
        let fault = first.map(|issue| Fault {
            kind: issue.kind,
            message: issue.message.clone(),
            hint: issue.hint.clone(),
            details: json!({"file": issue.file}),
        });
        printer::json(&printer::with_status(json!({"ok": worst == 0, "items": items}), fault.as_ref()));
    } else {
        for item in items {
            show(item);
        }
        let bad = items.iter().filter(|item| !item.ok).count();
        printer::note(format!("{} checked, {bad} with problems", items.len()));
    }
    ExitCode::from(worst)
}

fn show(item: &Item) {
    let version = item.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    printer::line(format!("{} {}{}", mark(item.ok), item.tool_id, paint(DIM, version)));
    for issue in &item.issues {
        let place = issue.line.map(|line| format!("{}:{line}: ", issue.file)).unwrap_or_default();
        printer::line(format!("    {} {place}{}", paint(DIM, issue.kind), issue.message));
        if let Some(hint) = &issue.hint {
            printer::line(format!("    {} {hint}", paint(DIM, "hint:")));
        }
    }
    for warning in &item.warnings {
        printer::warning(warning);
    }
}
