use kiwi_chain::{Difference, compare};
use kiwi_model::lockfile::Lockfile;
use kiwi_model::{Explain as _, Fault, Space};
use kiwi_space::{LockEntry, Slot, SpaceError};
use serde_json::{Value, json};
use std::process::ExitCode;

use super::target::Targets;
use crate::context::Context;
use crate::printer::{self, BAD, BOLD, DIM, paint};

/// Agree to what resolves today: show how lockfiles change, then change them. Conflicted files are made again.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    targets: Targets,
    /// Show the changes, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// A lockfile that changes.
struct Change {
    entry: LockEntry,
    new: Lockfile,
    differences: Vec<Difference>,
}

/// What is known before anything is written.
#[derive(Default)]
struct Preview {
    changes: Vec<Change>,
    unchanged: usize,
    /// Alternatives whose chain is made of tools that are not chosen here.
    elsewhere: Vec<String>,
    failed: Vec<(String, Fault)>,
}

impl Args {
    /// Shows, then updates. One lockfile that cannot be renewed stops no other.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let mut preview = Preview::default();
        for entry in self.targets.entries(context)? {
            preview.add(context, entry)?;
        }
        if !self.json {
            show(&preview);
        }
        if !self.dry_run {
            for scope in [Space::Project, Space::User] {
                let changes = preview.changes.iter().filter(|change| change.entry.scope == scope);
                write(context, scope, changes)?;
            }
        }
        Ok(self.conclude(&preview))
    }

    fn conclude(&self, preview: &Preview) -> ExitCode {
        let worst = preview.failed.iter().map(|(_, fault)| fault).max_by_key(|fault| fault.kind.exit_code());
        if self.json {
            let errors: Vec<Value> =
                preview.failed.iter().map(|(key, fault)| json!({"key": key, "error": fault})).collect();
            let object = json!({
                "dry_run": self.dry_run, "updated": preview.changes.iter().map(data).collect::<Vec<_>>(),
                "unchanged": preview.unchanged, "elsewhere": preview.elsewhere, "errors": errors,
            });
            printer::json(&printer::with_status(object, worst));
        } else {
            let what = if self.dry_run { "would change" } else { "updated" };
            printer::note(format!("{} {what}, {} unchanged", preview.changes.len(), preview.unchanged));
        }
        ExitCode::from(worst.map_or(0, |fault| fault.kind.exit_code()))
    }
}

impl Preview {
    fn add(&mut self, context: &Context, entry: LockEntry) -> Result<(), Fault> {
        let old = match context.kernel.spaces().locks().open(&entry) {
            Ok(stored) => Some(stored.lock),
            Err(SpaceError::Lockfile { path, tool, problem }) if problem.must_stay() => {
                let refused = SpaceError::Lockfile { path, tool, problem };
                self.failed.push((entry.key, refused.fault()));
                return Ok(());
            }
            Err(_) => None,
        };
        let renew = context.kernel.lockfiles();
        let renewed = Context::wait(renew.renew(&entry.name, old.as_ref(), &|line| printer::note(line)))?;
        match (renewed, &old) {
            (Err(fault), _) => self.failed.push((entry.key, fault)),
            (Ok(None), _) => self.elsewhere.push(entry.key),
            (Ok(Some(new)), Some(old)) => {
                let differences = compare(old, &new);
                if differences.is_empty() && old.root.category == new.root.category {
                    self.unchanged += 1;
                } else {
                    self.changes.push(Change { entry, new, differences });
                }
            }
            (Ok(Some(new)), None) => self.changes.push(Change { entry, new, differences: Vec::new() }),
        }
        Ok(())
    }
}

fn write<'c>(
    context: &Context,
    scope: Space,
    changes: impl Iterator<Item = &'c Change>,
) -> Result<(), Fault> {
    let mut changes = changes.peekable();
    if changes.peek().is_none() {
        return Ok(());
    }
    let locks = context.kernel.spaces().locks();
    let mut writer = locks.writer(scope).map_err(|error| error.fault())?;
    for change in changes {
        let slot = if change.entry.name.alternative.is_some() { Slot::Alternative } else { Slot::Default };
        let saved = writer.replace(&change.new, slot).map_err(|error| error.fault())?;
        // Another version, category or chain has another name; the old one was replaced, not joined.
        if !saved.path.ends_with(&change.entry.path) {
            writer.remove(&change.entry.key).map_err(|error| error.fault())?;
        }
    }
    writer.finish().map_err(|error| error.fault())
}

fn data(change: &Change) -> Value {
    json!({
        "key": change.entry.key, "tool_id": change.new.root.tool_id, "version": change.new.root.version,
        "scope": change.entry.scope, "chain_hash": change.new.chain_hash, "differences": change.differences,
        "was_broken": change.entry.problem,
    })
}

fn show(preview: &Preview) {
    for change in &preview.changes {
        printer::line(paint(BOLD, &change.entry.key));
        if let Some(problem) = &change.entry.problem {
            printer::line(format!("    made again: {}", problem.message));
        }
        for difference in &change.differences {
            printer::line(format!("    {difference}"));
        }
    }
    for key in &preview.elsewhere {
        printer::line(paint(
            DIM,
            format!("{key} runs through tools that are not chosen here; left as it is"),
        ));
    }
    for (key, fault) in &preview.failed {
        printer::note(format!("{} {key}", paint(BAD, "not renewed")));
        printer::fault(fault);
    }
}
