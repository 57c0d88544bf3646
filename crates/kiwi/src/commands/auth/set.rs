use kiwi_model::Fault;
use std::process::ExitCode;

use super::typed::secret;
use crate::context::Context;
use crate::printer;

/// Store a secret under a name. It is typed unseen, or piped in; never an argument.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The name that tools ask for in `requires_secret` or `auth`.
    name: String,
}

impl Args {
    /// Stores it.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let auth = context.kernel.auth()?;
        let value = secret(&format!("secret for `{}`: ", self.name))?;
        let replaced = auth.set(&self.name, value)?;
        printer::note(format!("{} `{}`", if replaced { "replaced" } else { "stored" }, self.name));
        Ok(ExitCode::SUCCESS)
    }
}
