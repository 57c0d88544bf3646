use kiwi_gate::{Resolve, Synced, SyncedLock};
use kiwi_model::{ErrorKind, Fault};
use serde_json::json;
use std::process::ExitCode;

use super::Scope;
use crate::context::Context;
use crate::printer::{self, BAD, BOLD, DIM, GOOD, WARN, count, paint};

/// Share lockfiles through a registry: what changed here goes there.
///
/// A lockfile that changed on both sides is a conflict, and stays as it is until `--ours`, `--theirs` or `--merge` says
/// which counts.
#[derive(Debug, clap::Args)]
pub struct Push {
    #[command(flatten)]
    sync: Sync,
}

/// Have lockfiles that others shared through a registry: what changed there comes here.
///
/// A lockfile that changed on both sides is a conflict, and stays as it is until `--ours`, `--theirs` or `--merge` says
/// which counts.
#[derive(Debug, clap::Args)]
pub struct Pull {
    #[command(flatten)]
    sync: Sync,
}

#[derive(Debug, clap::Args)]
struct Sync {
    /// The name under which the team shares them.
    #[arg(long, value_name = "NAME", default_value = "default")]
    set: String,
    /// Whose: the project's where there is one, else the user's.
    #[arg(long, value_enum)]
    scope: Option<Scope>,
    #[command(flatten)]
    counts: Counts,
    /// The registry; by default what `KIWI_REGISTRY` or the configuration says.
    #[arg(long, value_name = "URL")]
    registry: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct Counts {
    /// Where both sides changed, what lies here counts.
    #[arg(long)]
    ours: bool,
    /// Where both sides changed, what the registry has counts.
    #[arg(long)]
    theirs: bool,
    /// Where both sides changed, whichever was frozen later counts.
    #[arg(long)]
    merge: bool,
}

impl Push {
    /// Whether standard output must hold one JSON object.
    pub fn json(&self) -> bool {
        self.sync.json
    }

    /// Pushes.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let sharing = context.kernel.sharing(self.sync.registry.as_deref())?;
        let space = Scope::space(self.sync.scope, context);
        let done = Context::wait(sharing.push_lockfiles(&self.sync.set, space, self.sync.resolve()))??;
        Ok(self.sync.conclude(&done))
    }
}

impl Pull {
    /// Whether standard output must hold one JSON object.
    pub fn json(&self) -> bool {
        self.sync.json
    }

    /// Pulls.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let sharing = context.kernel.sharing(self.sync.registry.as_deref())?;
        let space = Scope::space(self.sync.scope, context);
        let done = Context::wait(sharing.pull_lockfiles(&self.sync.set, space, self.sync.resolve()))??;
        Ok(self.sync.conclude(&done))
    }
}

impl Sync {
    fn resolve(&self) -> Resolve {
        match (self.counts.ours, self.counts.theirs, self.counts.merge) {
            (true, _, _) => Resolve::Ours,
            (_, true, _) => Resolve::Theirs,
            (_, _, true) => Resolve::Merge,
            _ => Resolve::Tell,
        }
    }

    fn conclude(&self, done: &[SyncedLock]) -> ExitCode {
        let conflicts: Vec<&str> =
            done.iter().filter(|it| it.state == Synced::Conflict).map(|it| it.key.as_str()).collect();
        let fault = (!conflicts.is_empty()).then(|| {
            let message = format!(
                "{} changed on both sides: {}",
                count(conflicts.len(), "lockfile"),
                conflicts.join(", ")
            );
            Fault::new(ErrorKind::LockfileMismatch, message)
                .with_hint("say which counts: `--ours`, `--theirs`, or `--merge` for the later one")
                .with_details(json!({"conflicts": conflicts}))
        });
        if self.json {
            printer::json(&printer::with_status(json!({"set": self.set, "lockfiles": done}), fault.as_ref()));
        } else {
            printer::table(&done.iter().map(row).collect::<Vec<_>>());
            fault.iter().for_each(printer::fault);
        }
        fault.map_or(ExitCode::SUCCESS, |fault| ExitCode::from(fault.kind.exit_code()))
    }
}

fn row(synced: &SyncedLock) -> Vec<String> {
    let (style, what) = match synced.state {
        Synced::Unchanged => (DIM, "unchanged"),
        Synced::Pushed => (GOOD, "pushed"),
        Synced::Pulled => (GOOD, "pulled"),
        Synced::Behind => (WARN, "is newer there: `kiwi lockfile pull`"),
        Synced::Ahead => (WARN, "is newer here: `kiwi lockfile push`"),
        Synced::Conflict => (BAD, "conflict"),
    };
    let by = synced.user.as_ref().map(|user| paint(DIM, format!("there by {user}"))).unwrap_or_default();
    vec![paint(BOLD, &synced.key), paint(style, what), by]
}
