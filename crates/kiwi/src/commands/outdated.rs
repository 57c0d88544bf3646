use kiwi_model::{Fault, Version};
use serde_json::json;
use std::process::ExitCode;

use super::lockfile::Scope;
use crate::context::Context;
use crate::printer::{self, BOLD, DIM, WARN, paint};

/// Show installed tools of which their registry has something newer, and those that were yanked.
#[derive(Debug, clap::Args)]
pub struct Args {
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
    /// Asks the registry about each.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let space = Scope::space(self.scope, context);
        let sharing = context.kernel.sharing(self.registry.as_deref())?;
        let outdated = Context::wait(sharing.outdated(space))??;
        if self.json {
            printer::json(&json!({"status": "success", "outdated": outdated}));
            return Ok(ExitCode::SUCCESS);
        }
        if outdated.is_empty() {
            printer::note("everything is as new as it can be");
            return Ok(ExitCode::SUCCESS);
        }
        let shown =
            |version: &Option<Version>| version.as_ref().map_or_else(|| "–".to_owned(), Version::to_string);
        let mut rows =
            vec![["tool", "installed", "compatible", "latest", ""].map(|head| paint(DIM, head)).to_vec()];
        rows.extend(outdated.iter().map(|it| {
            let yanked =
                it.yanked.as_ref().map(|why| paint(WARN, format!("yanked: {why}"))).unwrap_or_default();
            let id = paint(BOLD, &it.tool_id);
            vec![id, it.current.to_string(), shown(&it.compatible), shown(&it.latest), yanked]
        }));
        printer::table(&rows);
        Ok(ExitCode::SUCCESS)
    }
}
