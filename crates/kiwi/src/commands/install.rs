use kiwi_gate::{Installation, LinkState, Sharing};
use kiwi_model::{Fault, Space, ToolRef};
use serde_json::{Value, json};
use std::process::ExitCode;

use super::lockfile::Scope;
use crate::context::Context;
use crate::printer::{self, BOLD, DIM, GOOD, paint};
use crate::transfer::Transfers;

/// Have a tool from a registry, with everything it runs on, verified and frozen in a lockfile.
///
/// What was fetched once is kept for every project, so the next time needs no network.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which tools, and after `@` the versions that will do.
    #[arg(required = true)]
    tools: Vec<String>,
    /// Where to: the project where there is one, else the user space.
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
    /// Installs, one tool after the other.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let asked: Vec<ToolRef> =
            self.tools.iter().map(|tool| ToolRef::parse(tool)).collect::<Result<_, _>>()?;
        let space = Scope::space(self.scope, context);
        let sharing = context.kernel.sharing(self.registry.as_deref())?;
        let mut done = Vec::new();
        for ask in &asked {
            let transfers = Transfers::new("bytes fetched:");
            let installation = Context::wait(sharing.install(ask, space, &transfers.shown()))??;
            tell(&sharing, &installation);
            if !self.json {
                show(context, &installation, space);
            }
            done.push(as_json(&installation));
        }
        if self.json {
            printer::json(&json!({
                "status": "success", "registry": sharing.registry().url(), "scope": space, "installed": done,
            }));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Says what is worth saying about an installation.
pub fn tell(sharing: &Sharing<'_>, installation: &Installation) {
    if installation.is_offline {
        let url = sharing.registry().url();
        printer::warning(format!("{url} does not answer; what it said before is used"));
    }
    installation.warnings.iter().for_each(printer::warning);
}

/// As programs read it.
pub fn as_json(installation: &Installation) -> Value {
    json!({
        "tool_id": installation.chain.first().map(|link| &link.tool_id),
        "version": installation.chain.first().map(|link| &link.version),
        "chain": installation.chain,
        "lockfile": installation.lockfile.as_ref().map(|path| path.display().to_string()),
        "offline": installation.is_offline,
        "warnings": installation.warnings,
    })
}

/// As people read it.
pub fn show(context: &Context, installation: &Installation, space: Space) {
    for (depth, link) in installation.chain.iter().enumerate() {
        let name = paint(BOLD, format!("{}@{}", link.tool_id, link.version));
        let state = match link.state {
            LinkState::Installed => paint(GOOD, "installed"),
            LinkState::Present => paint(DIM, "was there"),
        };
        let inset = if depth == 0 { String::new() } else { format!("{}└ ", "  ".repeat(depth - 1)) };
        printer::line(format!("{inset}{name} {state} {}", paint(DIM, link.integrity.short())));
    }
    if let Some(lockfile) = &installation.lockfile {
        let lockfile = context.shown(lockfile);
        printer::line(paint(DIM, format!("frozen in {lockfile}, in the {space} space")));
    }
}
