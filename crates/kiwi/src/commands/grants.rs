use kiwi_gate::{Accept, Entry, Grant};
use kiwi_model::Fault;
use serde_json::{Value, json};
use std::process::ExitCode;

use super::reviews;
use crate::context::Context;
use crate::printer::{self, BOLD, DIM, WARN, count, paint};

/// List remembered approvals, or take one back.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print one JSON object.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List them: for whom, for which tool, with what, how often, until when.
    List,
    /// Take one back. One that cannot be read is removed as well.
    Revoke {
        /// Its name, or the beginning of it.
        id: String,
    },
}

impl Args {
    /// Whether standard output must hold one JSON object.
    pub fn json(&self) -> bool {
        self.json
    }

    /// Lists, or revokes.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let approvals = context.kernel.approvals()?;
        if let Some(Command::Revoke { id }) = &self.command {
            let entry = approvals.revoke(id)?;
            if self.json {
                printer::json(&json!({"status": "success", "revoked": entry.id, "grant": entry.item.ok()}));
            } else {
                printer::note(format!("revoked `{}`", entry.id));
            }
            return Ok(ExitCode::SUCCESS);
        }
        let (key, now) = (approvals.key()?, reviews::now()?);
        let state = |entry: &Entry<Grant>| match &entry.item {
            Err(_) => "unreadable",
            Ok(grant) if !grant.is_signed(key.as_ref()) => "unsigned",
            Ok(grant) if grant.used >= grant.uses => "used",
            Ok(grant) if !grant.is_live(now) => "expired",
            Ok(_) => "live",
        };
        let entries = approvals.grants()?;
        if self.json {
            let grants: Vec<Value> = entries.iter().map(|entry| data(entry, state(entry))).collect();
            printer::json(&json!({"status": "success", "grants": grants}));
            return Ok(ExitCode::SUCCESS);
        }
        printer::table(&entries.iter().map(|entry| row(entry, state(entry))).collect::<Vec<_>>());
        printer::note(count(entries.len(), "grant"));
        Ok(ExitCode::SUCCESS)
    }
}

fn data(entry: &Entry<Grant>, state: &str) -> Value {
    let (mut value, problem) = match &entry.item {
        Ok(grant) => (json!(grant), None),
        Err(why) => (json!({"id": entry.id}), Some(why)),
    };
    if let Value::Object(map) = &mut value {
        map.insert("state".into(), state.into());
        map.insert("problem".into(), json!(problem));
    }
    value
}

fn row(entry: &Entry<Grant>, state: &str) -> Vec<String> {
    let state_shown = paint(if state == "live" { DIM } else { WARN }, state);
    match &entry.item {
        Ok(grant) => vec![
            paint(BOLD, &grant.id),
            grant.tool.to_string(),
            reviews::plain(&grant.caller),
            reviews::plain(&with(grant)),
            format!("{}/{} used", grant.used, grant.uses),
            paint(DIM, format!("until {:.0}", grant.expires_at)),
            state_shown,
        ],
        Err(why) => vec![paint(BOLD, reviews::plain(&entry.id)), reviews::plain(why), state_shown],
    }
}

/// The parameters as the grant takes them.
fn with(grant: &Grant) -> String {
    let shown = |(name, accept): (&String, &Accept)| match accept {
        Accept::Any => format!("{name}=*any*"),
        Accept::Matching(glob) => format!("{name}~{glob}"),
        Accept::Exactly(_) => {
            let value = grant.params.get(name).map(ToString::to_string).unwrap_or_default();
            format!("{name}={}", value.chars().take(40).collect::<String>())
        }
    };
    grant.predicate.iter().map(shown).collect::<Vec<_>>().join(" ")
}
