use kiwi_gate::SessionSummary;
use kiwi_model::Fault;
use serde_json::{Value, json};
use std::process::ExitCode;

use super::reviews::plain;
use crate::context::Context;
use crate::printer::{self, BOLD, DIM, WARN, count, paint};

/// List sessions with their calls, denials and help signals, or show one.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Show this one: its name, or the beginning of it.
    session: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Lists, or shows.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let help = context.kernel.help()?;
        let Some(session) = &self.session else {
            let all = help.sessions()?;
            if self.json {
                printer::json(&json!({"status": "success", "sessions": all}));
            } else {
                printer::table(&all.iter().map(row).collect::<Vec<_>>());
                printer::note(format!("{} sessions", all.len()));
            }
            return Ok(ExitCode::SUCCESS);
        };
        let detail = help.session(session)?;
        if self.json {
            printer::json(&json!({"status": "success", "session": detail}));
            return Ok(ExitCode::SUCCESS);
        }
        printer::table(&[row(&detail.summary)]);
        let calls = detail.call_list.iter().map(|call| {
            let kind = call.result.get("kind").and_then(Value::as_str).unwrap_or_default();
            (
                call.at.clone(),
                vec![paint(DIM, plain(&call.at)), plain(&call.event), plain(&call.tool), kind.to_owned()],
            )
        });
        let signals = detail.signal_list.iter().map(|signal| {
            let at = format!("{:.6}", signal.at);
            let id = signal.id.clone().unwrap_or_default();
            (
                at.clone(),
                vec![paint(DIM, at), paint(BOLD, plain(&signal.signal)), plain(&id), said(&signal.body)],
            )
        });
        let mut rows: Vec<(String, Vec<String>)> = calls.chain(signals).collect();
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        printer::table(&rows.into_iter().map(|(_, row)| row).collect::<Vec<_>>());
        Ok(ExitCode::SUCCESS)
    }
}

fn row(summary: &SessionSummary) -> Vec<String> {
    let short =
        |at: &Option<String>| at.as_deref().map(|at| at.chars().take(19).collect()).unwrap_or_default();
    let (first, last): (String, String) = (short(&summary.first), short(&summary.last));
    let broken = match summary.unreadable {
        0 => String::new(),
        lines => paint(WARN, format!("{lines} lines make no sense")),
    };
    vec![
        summary.session.clone(),
        plain(summary.caller.as_deref().unwrap_or_default()),
        paint(DIM, format!("{first} – {last}")),
        count(summary.calls, "call"),
        format!("{} denied", summary.denials),
        count(summary.signals, "signal"),
        broken,
    ]
}

/// The sentence in a signal.
fn said(body: &Value) -> String {
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let said = ["reason", "question", "topic", "verdict"].iter().find_map(|name| text(name));
    plain(said.unwrap_or_default())
}
