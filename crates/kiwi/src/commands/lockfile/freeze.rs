use kiwi_model::lockfile::Lockfile;
use kiwi_model::{ErrorKind, Explain as _, Fault, Space, ToolId, ToolRef, Version};
use kiwi_space::{SaveOutcome, Slot, is_within};
use serde_json::{Value, json};
use std::process::ExitCode;

use super::Scope;
use crate::commands::tool::everything;
use crate::context::Context;
use crate::printer::{self, BAD, BOLD, DIM, GOOD, paint};

/// How many lockfiles are written before the index is brought up to date.
const BATCH: usize = 256;

/// Write down the chain that a tool runs through today: every version, every identity, every installed package.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Which tools, and after `@` the versions that will do.
    #[arg(required_unless_present_any = ["all", "category"])]
    tools: Vec<String>,
    /// Every tool of the scope's own space.
    #[arg(long, conflicts_with = "tools")]
    all: bool,
    /// Only tools of this category, and of those below it; all of them where none is named.
    #[arg(long, short, value_name = "CATEGORY")]
    category: Option<String>,
    /// Whose lockfile: the project's where there is one, else the user's.
    #[arg(long, value_enum)]
    scope: Option<Scope>,
    /// Beside the lockfile that is there: another chain that is fine too, such as another runtime.
    #[arg(long)]
    alternative: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// A tool that is to be frozen.
enum Target {
    /// Whichever version of it is meant.
    Asked(ToolRef),
    /// This one.
    Version(ToolId, Version),
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Asked(ask) => write!(f, "{ask}"),
            Self::Version(id, version) => write!(f, "{id}@{version}"),
        }
    }
}

/// What was asked for, and why it was not frozen.
type Failure = (String, Fault);

impl Args {
    /// Freezes. One tool that cannot be frozen stops no other.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let scope = Scope::space(self.scope, context);
        let slot = if self.alternative { Slot::Alternative } else { Slot::Default };
        let mut done: Vec<Value> = Vec::new();
        let (targets, mut failed) = self.targets(context, scope)?;
        for batch in targets.chunks(BATCH) {
            let mut frozen = Vec::new();
            for target in batch {
                match self.freeze(context, target) {
                    Ok(lock) => frozen.push(lock),
                    Err(fault) => failed.push((target.to_string(), fault)),
                }
            }
            let (saved, refused) = self.save(context, scope, slot, &frozen)?;
            done.extend(saved);
            failed.extend(refused);
        }
        Ok(self.conclude(&done, &failed))
    }

    /// The tools that are meant, and those that cannot even be read.
    fn targets(&self, context: &Context, scope: Space) -> Result<(Vec<Target>, Vec<Failure>), Fault> {
        if !self.tools.is_empty() {
            let asked = self.tools.iter().map(|tool| ToolRef::parse(tool).map(Target::Asked));
            return Ok((asked.collect::<Result<_, _>>()?, Vec::new()));
        }
        let (mut targets, mut failed) = (Vec::new(), Vec::new());
        for (_, listed) in everything(context, &[scope]) {
            match listed.result {
                Ok(tool) if self.is_meant(&tool.category) => {
                    targets
                        .push(Target::Version(tool.manifest.tool_id.clone(), tool.manifest.version.clone()));
                }
                Ok(_) => {}
                Err(fault) => failed.push((listed.id_hint, fault)),
            }
        }
        match &self.category {
            Some(category) if targets.is_empty() => {
                Err(Fault::new(ErrorKind::NotFound, format!("there is no tool in category `{category}`"))
                    .with_hint("`kiwi tool list --json` says which categories there are"))
            }
            _ => Ok((targets, failed)),
        }
    }

    fn is_meant(&self, category: &str) -> bool {
        is_within(category, self.category.as_deref().unwrap_or_default())
    }

    fn freeze(&self, context: &Context, target: &Target) -> Result<Lockfile, Fault> {
        let lockfiles = context.kernel.lockfiles();
        let progress = |line: &str| printer::note(line);
        let lock = match target {
            Target::Asked(ask) => Context::wait(lockfiles.freeze(ask, &progress))?,
            Target::Version(id, version) => Context::wait(lockfiles.freeze_version(id, version, &progress))?,
        }?;
        if self.is_meant(&lock.root.category) {
            return Ok(lock);
        }
        let message = format!("`{target}` is in category `{}`", lock.root.category);
        Err(Fault::new(ErrorKind::NotFound, message).with_hint("leave out --category, or name that one"))
    }

    fn save(
        &self,
        context: &Context,
        scope: Space,
        slot: Slot,
        frozen: &[Lockfile],
    ) -> Result<(Vec<Value>, Vec<Failure>), Fault> {
        let (mut done, mut failed) = (Vec::new(), Vec::new());
        if frozen.is_empty() {
            return Ok((done, failed));
        }
        let locks = context.kernel.spaces().locks();
        let mut writer = locks.writer(scope).map_err(|error| error.fault())?;
        for lock in frozen {
            let (id, version) = (&lock.root.tool_id, &lock.root.version);
            let saved = match writer.save(lock, slot) {
                Ok(saved) => saved,
                Err(refused) => {
                    failed.push((format!("{id}@{version}"), refused.fault()));
                    continue;
                }
            };
            let outcome = match saved.outcome {
                SaveOutcome::Created => "created",
                SaveOutcome::Rewritten => "rewritten",
                SaveOutcome::Unchanged => "unchanged",
            };
            if !self.json {
                let style = if saved.outcome == SaveOutcome::Unchanged { DIM } else { GOOD };
                let name = paint(BOLD, format!("{id}@{version}"));
                printer::line(format!("{} {name}  {}", paint(style, outcome), context.shown(&saved.path)));
            }
            done.push(json!({
                "tool_id": id, "version": version, "category": lock.root.category, "chain_hash": lock.chain_hash,
                "scope": scope, "path": saved.path, "outcome": outcome,
            }));
        }
        writer.finish().map_err(|error| error.fault())?;
        Ok((done, failed))
    }

    fn conclude(&self, done: &[Value], failed: &[Failure]) -> ExitCode {
        let worst = failed.iter().map(|(_, fault)| fault).max_by_key(|fault| fault.kind.exit_code());
        if self.json {
            let errors: Vec<Value> =
                failed.iter().map(|(ask, fault)| json!({"tool": ask, "error": fault})).collect();
            let object = json!({"lockfiles": done, "errors": errors});
            printer::json(&printer::with_status(object, worst));
        } else if let ([(_, fault)], true) = (failed, done.is_empty()) {
            printer::fault(fault);
        } else {
            for (ask, fault) in failed {
                printer::note(format!("{} {ask}", paint(BAD, "not frozen")));
                printer::fault(fault);
            }
        }
        ExitCode::from(worst.map_or(0, |fault| fault.kind.exit_code()))
    }
}
