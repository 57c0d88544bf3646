use kiwi_model::{Explain as _, Fault};
use serde_json::json;
use std::process::ExitCode;

use crate::context::Context;
use crate::printer::{self, BOLD, paint};

/// Show as whom a registry knows you.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The registry; by default what `KIWI_REGISTRY` or the configuration says.
    #[arg(long, value_name = "URL")]
    registry: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Asks.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let sharing = context.kernel.sharing(self.registry.as_deref())?;
        let known = Context::wait(sharing.registry().whoami())?.map_err(|error| error.fault())?;
        if self.json {
            printer::json(&json!({
                "status": "success", "registry": sharing.registry().url(), "user": known.user,
                "scopes": known.scopes, "namespaces": known.namespaces,
            }));
        } else {
            let scopes: Vec<String> =
                known.scopes.iter().map(|scope| format!("{scope:?}").to_lowercase()).collect();
            printer::line(format!("{} may {}", paint(BOLD, &known.user), scopes.join(", ")));
            if !known.namespaces.is_empty() {
                printer::line(format!("owns {}", known.namespaces.join(", ")));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
