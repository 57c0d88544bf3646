use kiwi_model::{Fault, Secret};
use serde_json::json;
use std::process::ExitCode;

use super::auth::secret;
use crate::context::Context;
use crate::printer::{self, mark};

/// Keep a registry's token, so that it need not be given again. It is typed unseen, or piped in.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The registry; by default what `KIWI_REGISTRY` or the configuration says.
    #[arg(long, value_name = "URL")]
    registry: Option<String>,
    /// The token. Others on this machine can see it here; typing it or piping it in is better.
    #[arg(long, value_name = "TOKEN", conflicts_with = "logout")]
    token: Option<String>,
    /// Forget the token instead.
    #[arg(long)]
    logout: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Asks the registry whose token it is, and keeps it.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let sharing = context.kernel.sharing(self.registry.as_deref())?;
        let url = sharing.registry().url().to_owned();
        if self.logout {
            let was_there = sharing.logout()?;
            if self.json {
                printer::json(&json!({"status": "success", "registry": url, "removed": was_there}));
            } else {
                let what = if was_there { "is forgotten" } else { "was not kept" };
                printer::note(format!("the token for {url} {what}"));
            }
            return Ok(ExitCode::SUCCESS);
        }
        // From here on nothing shows this process's memory.
        context.kernel.auth()?;
        let token = match &self.token {
            Some(token) => Secret::new(token.clone()),
            None => secret(&format!("token for {url}: "))?,
        };
        let known = Context::wait(sharing.login(token))??;
        if self.json {
            printer::json(&json!({
                "status": "success", "registry": url, "user": known.user, "scopes": known.scopes,
                "namespaces": known.namespaces,
            }));
        } else {
            printer::note(format!("{} {url} knows you as {}", mark(true), known.user));
        }
        Ok(ExitCode::SUCCESS)
    }
}
