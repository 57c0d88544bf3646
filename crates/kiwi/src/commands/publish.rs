use kiwi_gate::{Publish, PublishState, Published};
use kiwi_model::{Fault, ToolRef};
use kiwi_registry::protocol::Visibility;
use serde_json::json;
use std::process::ExitCode;

use crate::context::Context;
use crate::printer::{self, BOLD, DIM, count, mark, paint};
use crate::transfer::Transfers;

/// Give a tool to a registry: checked, signed with your key, and never to be changed again.
///
/// What it runs on must be there first. Your signing key is made when you first need it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which tool, and after `@` which version.
    tool: String,
    /// Check everything, and publish nothing.
    #[arg(long)]
    dry_run: bool,
    /// Who sees it, where it is new: everybody, whoever knows its name, or its owners.
    #[arg(long, value_enum)]
    visibility: Option<Seen>,
    /// The registry; by default what `KIWI_REGISTRY` or the configuration says.
    #[arg(long, value_name = "URL")]
    registry: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Seen {
    Public,
    Unlisted,
    Private,
}

impl Args {
    /// Publishes.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let ask = ToolRef::parse(&self.tool)?;
        let sharing = context.kernel.sharing(self.registry.as_deref())?;
        let how = Publish {
            dry_run: self.dry_run,
            visibility: self.visibility.map(|seen| match seen {
                Seen::Public => Visibility::Public,
                Seen::Unlisted => Visibility::Unlisted,
                Seen::Private => Visibility::Private,
            }),
        };
        let transfers = Transfers::new("bytes sent:");
        let published = Context::wait(sharing.publish(&ask, how, &transfers.shown()))??;
        published.warnings.iter().for_each(printer::warning);
        let url = sharing.registry().url();
        if self.json {
            printer::json(&json!({
                "status": "success", "outcome": published.state, "tool_id": published.tool_id,
                "version": published.version, "integrity": published.integrity, "key": published.key,
                "files": published.files, "bytes_sent": published.sent, "registry": url,
            }));
        } else {
            show(&published, url);
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn show(published: &Published, url: &str) {
    let name = paint(BOLD, format!("{}@{}", published.tool_id, published.version));
    let what = match published.state {
        PublishState::Published => format!("{} {name} is published at {url}", mark(true)),
        PublishState::Unchanged => {
            format!("{} {name} is at {url} already, exactly as it is here", mark(true))
        }
        PublishState::Rehearsed => format!(
            "{} {name} could be published at {url}: {}, {} to send",
            mark(true),
            count(published.files, "file"),
            count(published.sent, "byte")
        ),
    };
    printer::line(what);
    printer::line(paint(DIM, format!("  {}, signed by {}", published.integrity.short(), published.key)));
}
