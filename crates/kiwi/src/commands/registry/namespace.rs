use kiwi_model::{Explain as _, Fault};
use serde_json::json;
use std::process::ExitCode;

use crate::context::Context;
use crate::printer::{self, BOLD, paint};

/// Look after namespaces: who may publish `name.…`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
    /// The registry; by default what `KIWI_REGISTRY` or the configuration says.
    #[arg(long, value_name = "URL", global = true)]
    registry: Option<String>,
    /// Print one JSON object.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show who owns a namespace.
    Show {
        /// Its name.
        name: String,
    },
    /// Take a namespace that nobody has. Publishing in one does the same.
    Claim {
        /// Its name.
        name: String,
    },
    /// Let another user publish in it.
    AddOwner {
        /// Its name.
        name: String,
        /// The user.
        user: String,
    },
    /// Let a user publish in it no more.
    RemoveOwner {
        /// Its name.
        name: String,
        /// The user.
        user: String,
    },
}

impl Args {
    /// Whether standard output must hold one JSON object.
    pub fn json(&self) -> bool {
        self.json
    }

    /// Does it.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let sharing = context.kernel.sharing(self.registry.as_deref())?;
        let registry = sharing.registry();
        let namespace = Context::wait(async {
            match &self.command {
                Command::Show { name } => registry.namespace(name).await,
                Command::Claim { name } => registry.claim(name).await,
                Command::AddOwner { name, user } => registry.add_owner(name, user).await,
                Command::RemoveOwner { name, user } => registry.remove_owner(name, user).await,
            }
        })?
        .map_err(|error| error.fault())?;
        if self.json {
            printer::json(&json!({"status": "success", "namespace": namespace}));
        } else {
            printer::line(format!(
                "{} belongs to {}",
                paint(BOLD, &namespace.name),
                namespace.owners.join(", ")
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}
