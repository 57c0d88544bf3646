use kiwi_gate::{Audit, AuditLine};
use kiwi_model::Fault;
use kiwi_model::record::Event;
use serde_json::Value;
use std::process::ExitCode;

use crate::context::Context;
use crate::printer::{self, BAD, DIM, GOOD, WARN, paint};

mod export;
mod show;
mod tail;
mod unfinished;
mod verify;

/// Read the record of every call, and prove that nobody changed it.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Tail(tail::Args),
    Show(show::Args),
    Verify(verify::Args),
    Export(export::Args),
    Unfinished(unfinished::Args),
}

impl Args {
    /// Whether standard output must hold one JSON object.
    pub fn json(&self) -> bool {
        match &self.command {
            Command::Tail(args) => args.json,
            Command::Show(args) => args.json,
            Command::Verify(args) => args.json,
            Command::Unfinished(args) => args.json,
            Command::Export(_) => false,
        }
    }

    /// Runs the inner command.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        match self.command {
            Command::Tail(args) => args.run(context),
            Command::Show(args) => args.run(context),
            Command::Verify(args) => args.run(context),
            Command::Export(args) => args.run(context),
            Command::Unfinished(args) => args.run(context),
        }
    }
}

/// A line as a row of a table.
fn row(line: &AuditLine) -> Vec<String> {
    let record = &line.line.record;
    let style = match record.event {
        Event::Request => WARN,
        Event::Enter => DIM,
        Event::Exit if record.result.as_ref().is_some_and(|result| result.ok) => GOOD,
        Event::Exit | Event::Denied => BAD,
    };
    let tool = match &record.version {
        Some(version) => format!("{}@{version}", record.tool),
        None => record.tool.clone(),
    };
    let outcome = record.result.as_ref().map(|result| match result.kind {
        Some(kind) => kind.to_string(),
        None => {
            format!("{:.1} ms", std::time::Duration::from_micros(result.duration_us).as_secs_f64() * 1000.0)
        }
    });
    let answer = record.decision.as_ref().map(|decision| decision.answer.clone());
    vec![
        paint(DIM, &record.at),
        paint(style, record.event.as_str()),
        tool,
        record.caller.clone(),
        outcome.or(answer).unwrap_or_default(),
        paint(DIM, &record.session),
    ]
}

/// A line as it stands in the log, with the file it stands in.
fn data(line: &AuditLine) -> Value {
    let mut value = serde_json::from_str(&line.text).unwrap_or(Value::Null);
    if let Value::Object(map) = &mut value {
        map.insert("file".into(), line.file.clone().into());
    }
    value
}

/// Says so where something could not be read: what is shown is then not all there is.
fn warn(audit: &Audit) {
    let unreadable = audit.unreadable();
    if unreadable > 0 {
        let records = printer::count(unreadable, "record");
        printer::warning(format!("{records} cannot be read; `kiwi audit verify` says more"));
    }
}
