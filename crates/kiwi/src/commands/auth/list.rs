use kiwi_model::Fault;
use kiwi_space::Credential;
use serde_json::json;
use std::process::ExitCode;

use crate::context::Context;
use crate::printer::{self, DIM, paint};

/// List what is stored: names, scopes and expiry, never values.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Lists.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let all = context.kernel.auth()?.all()?;
        if self.json {
            let data = |(name, it): (&String, &Credential)| {
                json!({
                    "name": name, "kind": kind(it), "scopes": it.scopes, "expires_at": it.expires_at,
                    "renewable": it.refresh.is_some(), "stored_at": it.stored_at,
                })
            };
            let credentials: Vec<_> = all.iter().map(data).collect();
            printer::json(&json!({"status": "success", "credentials": credentials}));
            return Ok(ExitCode::SUCCESS);
        }
        let row = |(name, it): (&String, &Credential)| {
            let expires = it.expires_at.map(|at| format!("until {at:.0}")).unwrap_or_default();
            vec![name.clone(), kind(it).to_owned(), it.scopes.join(" "), paint(DIM, expires)]
        };
        printer::table(&all.iter().map(row).collect::<Vec<_>>());
        Ok(ExitCode::SUCCESS)
    }
}

fn kind(credential: &Credential) -> &'static str {
    if credential.refresh.is_some() || credential.expires_at.is_some() { "token" } else { "secret" }
}
