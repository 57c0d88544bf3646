use kiwi_model::{ErrorKind, Fault};
use std::process::ExitCode;

use crate::context::Context;
use crate::printer;

/// Forget a secret.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Its name.
    name: String,
}

impl Args {
    /// Forgets it.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        if context.kernel.auth()?.remove(&self.name)? {
            printer::note(format!("removed `{}`", self.name));
            return Ok(ExitCode::SUCCESS);
        }
        Err(Fault::new(ErrorKind::NotFound, format!("no secret named `{}` is stored", self.name))
            .with_hint("`kiwi auth list` shows the names"))
    }
}
