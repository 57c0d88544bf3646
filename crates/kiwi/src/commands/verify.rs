use kiwi_chain::verify;
use kiwi_gate::Finding;
use kiwi_model::{ErrorKind, Fault, Space, ToolRef};
use serde_json::json;
use std::process::ExitCode;

use super::tool::check::{Item, conclude};
use super::tool::everything;
use crate::context::Context;

/// Recompute the identity of tools, and of every link they run through, and compare it with what was recorded.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which tools.
    tools: Vec<String>,
    /// Every tool of every space.
    #[arg(long, conflicts_with = "tools")]
    all: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Verifies.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        if self.tools.is_empty() && !self.all {
            return Err(Fault::new(ErrorKind::Usage, "nothing to verify")
                .with_hint("name tools, or use --all")
                .with_details(json!({})));
        }
        let items =
            if self.all { all(context) } else { self.tools.iter().map(|tool| one(context, tool)).collect() };
        Ok(conclude(&items, self.json))
    }
}

fn all(context: &Context) -> Vec<Item> {
    everything(context, &Space::LOOKUP)
        .into_iter()
        .map(|(_, listed)| match &listed.result {
            Ok(tool) => Item::of(
                tool,
                verify(tool).err().map(|mismatch| {
                    Finding::new(ErrorKind::IntegrityMismatch, mismatch.to_string(), &tool.path)
                }),
            ),
            Err(fault) => Item::unreadable(&listed.id_hint, fault, &listed.path),
        })
        .collect()
}

fn one(context: &Context, name: &str) -> Item {
    let plan = ToolRef::parse(name).and_then(|ask| context.kernel.plan(&ask));
    match plan {
        Err(fault) => Item::unreadable(name, &fault, ""),
        Ok(plan) => {
            let path = plan.tools().first().map(|tool| tool.path.clone()).unwrap_or_default();
            let issues = plan
                .mismatches()
                .iter()
                .map(|mismatch| Finding::new(ErrorKind::IntegrityMismatch, mismatch.to_string(), &path));
            match plan.tools().first() {
                Some(tool) => Item::of(tool, issues),
                None => Item::unreadable(name, &Fault::new(ErrorKind::Internal, "the chain is empty"), ""),
            }
        }
    }
}
