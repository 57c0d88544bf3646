use kiwi_gate::Update;
use kiwi_model::{Fault, ToolRef};
use serde_json::{Value, json};
use std::process::ExitCode;

use super::install::{as_json, show, tell};
use super::lockfile::Scope;
use crate::context::Context;
use crate::printer::{self, BOLD, DIM, paint};
use crate::transfer::Transfers;

/// Move installed tools to what their registry has now. What would change is shown first.
///
/// Versions that were agreed before stay installed, because other chains may need them; `kiwi uninstall` removes them.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which tools, and after `@` the versions that will do; all that were installed by default.
    tools: Vec<String>,
    /// Only show what would change.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
    /// Whose tools: the project's where there is one, else the user's.
    #[arg(long, value_enum)]
    scope: Option<Scope>,
    /// The registry; by default what `KIWI_REGISTRY` or the configuration says.
    #[arg(long, value_name = "URL")]
    registry: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Updates.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let asked: Vec<ToolRef> =
            self.tools.iter().map(|tool| ToolRef::parse(tool)).collect::<Result<_, _>>()?;
        let space = Scope::space(self.scope, context);
        let sharing = context.kernel.sharing(self.registry.as_deref())?;
        let nothing = |_: u64, _: u64| ();
        let updates = Context::wait(sharing.updates(&asked, space, &nothing))??;
        let updates: Vec<Update> = updates.into_iter().filter(|update| !update.changes.is_empty()).collect();
        if !self.json {
            updates.iter().for_each(preview);
        }
        let is_wanted = !self.dry_run && !updates.is_empty() && self.is_agreed()?;
        let mut done = Vec::new();
        for update in updates.iter().filter(|_| is_wanted) {
            let transfers = Transfers::new("bytes fetched:");
            let installation = Context::wait(sharing.update(update, space, &transfers.shown()))??;
            tell(&sharing, &installation);
            if !self.json {
                show(context, &installation, space);
            }
            done.push(as_json(&installation));
        }
        if self.json {
            let changes = |update: &Update| json!({"tool_id": update.root, "changes": update.changes});
            printer::json(&json!({
                "status": "success", "dry_run": self.dry_run,
                "updates": updates.iter().map(changes).collect::<Vec<Value>>(), "installed": done,
            }));
        } else if updates.is_empty() {
            printer::note("everything is as new as it can be");
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Whether a person at the terminal wants it; where there is none, the command itself says so.
    fn is_agreed(&self) -> Result<bool, Fault> {
        if self.yes || self.json || !Context::is_interactive() {
            return Ok(true);
        }
        printer::ask("update? [y/N] ");
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer).map_err(|error| {
            Fault::new(kiwi_model::ErrorKind::Internal, format!("no answer can be read: {error}"))
        })?;
        Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
    }
}

fn preview(update: &Update) {
    printer::line(paint(BOLD, &update.root));
    let row = |change: &kiwi_gate::Change| {
        let from = change.from.as_ref().map_or_else(|| "new".to_owned(), ToString::to_string);
        vec![format!("  {}", change.tool_id), paint(DIM, from), "→".to_owned(), change.to.to_string()]
    };
    printer::table(&update.changes.iter().map(row).collect::<Vec<_>>());
}
