use kiwi_model::{Fault, ToolRef};
use serde_json::json;
use std::process::ExitCode;

use super::lockfile::Scope;
use crate::context::Context;
use crate::printer::{self, BOLD, mark, paint};

/// Remove installed tools, and the lockfiles that speak of them.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which tools, and after `@` which versions; all versions by default.
    #[arg(required = true)]
    tools: Vec<String>,
    /// From where: the project where there is one, else the user space.
    #[arg(long, value_enum)]
    scope: Option<Scope>,
    /// Even if another lockfile needs them.
    #[arg(long)]
    force: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Removes them.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let asked: Vec<ToolRef> =
            self.tools.iter().map(|tool| ToolRef::parse(tool)).collect::<Result<_, _>>()?;
        let space = Scope::space(self.scope, context);
        let mut done = Vec::new();
        for ask in &asked {
            let gone = context.kernel.uninstall(ask, space, self.force)?;
            if !self.json {
                for version in &gone.versions {
                    let name = paint(BOLD, format!("{}@{version}", gone.tool_id));
                    printer::line(format!("{} {name} is removed", mark(true)));
                }
            }
            done.push(gone);
        }
        if self.json {
            printer::json(&json!({"status": "success", "uninstalled": done}));
        }
        Ok(ExitCode::SUCCESS)
    }
}
