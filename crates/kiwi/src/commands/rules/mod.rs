use camino::Utf8PathBuf;
use kiwi_model::{ErrorKind, Explain, Fault};
use kiwi_rules::RuleRegistry;
use kiwi_space::RuleText;
use serde_json::Value;
use std::process::ExitCode;
use std::sync::Arc;

use crate::context::Context;
use crate::printer;

mod check;
mod explain;
mod hash;
mod replay;
mod test;

/// Check, test, hash, explain and replay rules. Without a file the rules in force are meant.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Check(check::Args),
    Test(test::Args),
    Hash(hash::Args),
    Explain(explain::Args),
    Replay(replay::Args),
}

impl Args {
    /// Whether standard output must hold one JSON object.
    pub fn json(&self) -> bool {
        match &self.command {
            Command::Check(args) => args.json,
            Command::Test(args) => args.json,
            Command::Explain(args) => args.json,
            Command::Replay(args) => args.json,
            Command::Hash(_) => false,
        }
    }

    /// Runs the inner command.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        match self.command {
            Command::Check(args) => args.run(context),
            Command::Test(args) => args.run(context),
            Command::Hash(args) => args.run(context),
            Command::Explain(args) => args.run(context),
            Command::Replay(args) => args.run(context),
        }
    }
}

/// The rules of some files; of none, the rules in force.
fn registry(context: &Context, files: &[Utf8PathBuf]) -> Result<Arc<RuleRegistry>, Fault> {
    let loaded = if files.is_empty() {
        context.kernel.rules().active()
    } else {
        let texts = texts(context, files)?;
        context.kernel.rules().of(&texts).map(Arc::new).map_err(|error| error.fault())
    };
    loaded.inspect_err(point)
}

/// Points at each place where a ruleset is wrong, before the failure itself is told.
fn point(fault: &Fault) {
    for problem in fault.details.get("problems").and_then(Value::as_array).into_iter().flatten() {
        let field = |name: &str| problem.get(name).and_then(Value::as_str).unwrap_or_default();
        let place = |name: &str| problem.get(name).and_then(Value::as_u64).unwrap_or_default();
        printer::note(format!(
            "{}:{}:{}: {}",
            field("file"),
            place("line"),
            place("column"),
            field("message")
        ));
        printer::note(field("snippet"));
    }
}

/// Files as they were named; a folder stands for the rule files in it.
fn texts(context: &Context, files: &[Utf8PathBuf]) -> Result<Vec<RuleText>, Fault> {
    let mut texts = Vec::new();
    for file in files {
        let path = context.cwd.join(file);
        if !path.is_dir() {
            texts.push(text(file, &path)?);
            continue;
        }
        let entries = path.read_dir().map_err(|error| unreadable(file, &error))?;
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        for name in names.iter().filter_map(|name| name.to_str()).filter(|name| is_rule_file(name)) {
            texts.push(text(&file.join(name), &path.join(name))?);
        }
    }
    Ok(texts)
}

/// As the spaces know them: `rules/*.kappa`, spelled so.
fn is_rule_file(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| extension == "kappa")
}

fn text(shown: &Utf8PathBuf, path: &std::path::Path) -> Result<RuleText, Fault> {
    let bytes = std::fs::read(path).map_err(|error| unreadable(shown, &error))?;
    Ok(RuleText { name: shown.to_string(), bytes })
}

fn unreadable(file: &Utf8PathBuf, error: &std::io::Error) -> Fault {
    let kind = if error.kind() == std::io::ErrorKind::NotFound {
        ErrorKind::NotFound
    } else {
        ErrorKind::InvalidManifest
    };
    Fault::new(kind, format!("`{file}` cannot be read: {error}"))
}
