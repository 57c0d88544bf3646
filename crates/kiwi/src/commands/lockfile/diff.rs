use camino::Utf8Path;
use kiwi_chain::{Difference, compare};
use kiwi_model::lockfile::Lockfile;
use kiwi_model::{ErrorKind, Explain, Fault, ToolRef};
use serde_json::{Value, json};
use std::process::ExitCode;

use super::git::{self, Versions};
use crate::context::Context;
use crate::printer::{self, BOLD, DIM, paint};

/// Say what differs: a lockfile from what resolves today, two lockfiles, or two git revisions.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A tool, a lockfile, or two git revisions as `A..B`.
    #[arg(value_name = "TOOL|FILE|A..B")]
    old: String,
    /// Another lockfile, or with revisions the tool to look at.
    #[arg(value_name = "FILE|TOOL")]
    new: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// What differs between two states of one lockfile.
struct Comparison {
    key: String,
    differences: Vec<Difference>,
    /// `added`, `removed`, `changed`, `same`, or why one side cannot be read.
    state: String,
}

impl Args {
    /// Compares. A difference is an answer, not a failure.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let comparisons = match revisions(&self.old) {
            Some((old, new)) => self.between_revisions(context, old, new)?,
            None => vec![self.of_two(context)?],
        };
        if self.json {
            let changed = comparisons.iter().any(|comparison| comparison.state != "same");
            let list: Vec<Value> = comparisons.iter().map(data).collect();
            printer::json(&json!({"status": "success", "changed": changed, "lockfiles": list}));
        } else {
            comparisons.iter().for_each(show);
            if comparisons.is_empty() {
                printer::note("no lockfile differs");
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn of_two(&self, context: &Context) -> Result<Comparison, Fault> {
        let (ask, old) = side(context, &self.old)?;
        let new = match &self.new {
            Some(file) => side(context, file)?.1,
            None => Context::wait(context.kernel.lockfiles().freeze(&ask, &|line| printer::note(line)))??,
        };
        Ok(compared(old.root.tool_id.to_string(), Some(Ok(old)), Some(Ok(new))))
    }

    fn between_revisions(&self, context: &Context, old: &str, new: &str) -> Result<Vec<Comparison>, Fault> {
        let only = self.new.as_deref().map(ToolRef::parse).transpose()?;
        let meant = |versions: &Versions| match &only {
            Some(ask) => versions.is_of(&ask.id),
            None => true,
        };
        let changed = git::changed(context, old, new)?;
        let compared = |versions: Versions| compared(versions.path, versions.old, versions.new);
        Ok(changed.into_iter().filter(meant).map(compared).collect())
    }
}

/// `A..B`, unless a file is called so.
fn revisions(text: &str) -> Option<(&str, &str)> {
    let (old, new) = text.split_once("..").filter(|_| !Utf8Path::new(text).exists())?;
    let is_revision =
        |text: &str| !text.is_empty() && !text.starts_with(['-', '.', '/']) && !text.ends_with('/');
    (is_revision(old) && is_revision(new)).then_some((old, new))
}

/// A lockfile by its path, or by the tool it is for; and the tool that would be resolved in its place.
fn side(context: &Context, text: &str) -> Result<(ToolRef, Lockfile), Fault> {
    if !text.contains('/') && !text.ends_with(".lock.json") {
        let ask = ToolRef::parse(text)?;
        let stored = context.kernel.lockfiles().find(&ask)?;
        return Ok((ask, stored.lock));
    }
    let unreadable = |error: std::io::Error| {
        Fault::new(ErrorKind::NotFound, format!("`{text}` cannot be read: {error}"))
            .with_hint("`kiwi lockfile list` shows the lockfiles that are here")
    };
    let file = std::fs::read_to_string(text).map_err(unreadable)?;
    let lock = Lockfile::parse(&file).map_err(|error| {
        let fault = error.fault();
        Fault { message: format!("`{text}` {}", fault.message), ..fault }
    })?;
    Ok((ToolRef::from(lock.root.tool_id.clone()), lock))
}

type Read = Option<Result<Lockfile, Fault>>;

fn compared(key: String, old: Read, new: Read) -> Comparison {
    let (state, differences) = match (old, new) {
        (Some(Err(fault)), _) | (_, Some(Err(fault))) => (fault.message, Vec::new()),
        (None, None) => ("same".to_owned(), Vec::new()),
        (None, Some(_)) => ("added".to_owned(), Vec::new()),
        (Some(_), None) => ("removed".to_owned(), Vec::new()),
        (Some(Ok(old)), Some(Ok(new))) => {
            let differences = compare(&old, &new);
            (if differences.is_empty() { "same" } else { "changed" }.to_owned(), differences)
        }
    };
    Comparison { key, differences, state }
}

fn data(comparison: &Comparison) -> Value {
    json!({"lockfile": comparison.key, "state": comparison.state, "differences": comparison.differences})
}

fn show(comparison: &Comparison) {
    printer::line(format!("{}  {}", paint(BOLD, &comparison.key), paint(DIM, &comparison.state)));
    for difference in &comparison.differences {
        printer::line(format!("    {difference}"));
    }
}
