use kiwi_model::{Explain as _, Fault};
use kiwi_registry::protocol::{NewToken, Scope, TokenInfo};
use serde_json::json;
use std::process::ExitCode;

use crate::context::Context;
use crate::printer::{self, BOLD, DIM, mark, paint};

/// Make, list and end tokens. Needs a token of an admin.
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
    /// Make a token for a user. It is shown this once.
    Create {
        /// Whose; made where there is no such user.
        #[arg(long)]
        user: String,
        /// What it may do; may be given again.
        #[arg(long = "scope", value_enum, default_value = "publish")]
        scopes: Vec<Allowed>,
        /// Days until it ends; never by default.
        #[arg(long, value_name = "N")]
        days: Option<u32>,
    },
    /// List the tokens that are good.
    List,
    /// End a token.
    Revoke {
        /// Its id, as `list` shows it.
        id: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Allowed {
    /// See what its user may see.
    Read,
    /// Publish, yank, share lockfiles.
    Publish,
    /// Everything, everywhere.
    Admin,
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
        match self.command {
            Command::Create { user, scopes, days } => {
                let scopes = scopes.iter().map(|scope| match scope {
                    Allowed::Read => Scope::Read,
                    Allowed::Publish => Scope::Publish,
                    Allowed::Admin => Scope::Admin,
                });
                let new = NewToken { user, scopes: scopes.collect(), days };
                let made = Context::wait(registry.make_token(&new))?.map_err(|error| error.fault())?;
                if self.json {
                    printer::json(&json!({"status": "success", "token": made.token, "about": made.about}));
                } else {
                    printer::line(made.token);
                    printer::note(format!(
                        "a token for {}; it is not shown again",
                        paint(BOLD, made.about.user)
                    ));
                }
            }
            Command::List => {
                let all = Context::wait(registry.tokens())?.map_err(|error| error.fault())?.tokens;
                if self.json {
                    printer::json(&json!({"status": "success", "tokens": all}));
                } else {
                    printer::table(&all.iter().map(row).collect::<Vec<_>>());
                }
            }
            Command::Revoke { id } => {
                Context::wait(registry.end_token(&id))?.map_err(|error| error.fault())?;
                if self.json {
                    printer::json(&json!({"status": "success", "id": id}));
                } else {
                    printer::note(format!("{} the token {id} is good no more", mark(true)));
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn row(token: &TokenInfo) -> Vec<String> {
    let scopes: Vec<String> = token.scopes.iter().map(|scope| format!("{scope:?}").to_lowercase()).collect();
    let until = token.expires_at.as_ref().map(|at| format!("until {at}")).unwrap_or_default();
    vec![paint(BOLD, &token.id), token.user.clone(), scopes.join(", "), paint(DIM, until)]
}
