use kiwi_model::{ErrorKind, Explain as _, Fault, ToolId, Version};
use serde_json::json;
use std::process::ExitCode;

use crate::context::Context;
use crate::printer::{self, BOLD, mark, paint};

/// Have a published version chosen no more. Who has it in a lockfile keeps it: nothing is ever deleted.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which version: `tool@1.2.3`.
    #[arg(value_name = "TOOL@VERSION")]
    tool: String,
    /// Why, for those who have it.
    #[arg(long, value_name = "TEXT", default_value = "yanked by its publisher")]
    reason: String,
    /// Take it back.
    #[arg(long, conflicts_with = "reason")]
    undo: bool,
    /// The registry; by default what `KIWI_REGISTRY` or the configuration says.
    #[arg(long, value_name = "URL")]
    registry: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Yanks.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let unclear = || {
            Fault::new(ErrorKind::Usage, format!("`{}` does not name one version", self.tool))
                .with_hint("write it like `tool@1.2.3`")
        };
        let (id, version) = self.tool.split_once('@').ok_or_else(unclear)?;
        let id = ToolId::parse(id).map_err(|_| unclear())?;
        let version = Version::parse(version).map_err(|_| unclear())?;
        let sharing = context.kernel.sharing(self.registry.as_deref())?;
        let reason = (!self.undo).then_some(self.reason.as_str());
        let release = Context::wait(sharing.registry().yank(&id, &version, reason))?;
        let release = release.map_err(|error| error.fault())?;
        if self.json {
            printer::json(&json!({
                "status": "success", "tool_id": id, "version": version, "yanked": release.yanked,
            }));
        } else {
            let name = paint(BOLD, format!("{id}@{version}"));
            let what = if release.yanked.is_some() { "is yanked" } else { "is not yanked any more" };
            printer::line(format!("{} {name} {what}", mark(true)));
        }
        Ok(ExitCode::SUCCESS)
    }
}
