//! A plan held against what was agreed, and what follows from a difference.

use kiwi_chain::{Difference, Plan};
use kiwi_model::lockfile::{LockEnvironment, LockMode, SUFFIX};
use kiwi_model::record::LockNote;
use kiwi_model::{ErrorKind, Explain, Fault, Language, Space, ToolRef, Version};
use kiwi_space::Stored;
use serde_json::json;

/// A plan, and what was agreed about it.
pub struct Planned {
    /// What would run.
    pub plan: Plan,
    /// What a missing lockfile or a difference means.
    pub mode: LockMode,
    /// The lockfile it was held against.
    pub lock: Option<Agreement>,
    /// What speaks against it: no lockfile where there must be one, an unreadable one, or differences.
    pub(crate) objection: Option<Fault>,
}

/// A lockfile, and how the chain differs from it.
#[derive(Debug, Clone)]
pub struct Agreement {
    /// The lockfile.
    pub stored: Stored,
    /// Every difference, in words and as data.
    pub differences: Vec<Difference>,
    /// An alternative with the same chain, which can only be about another interpreter.
    pub(crate) twin: Option<Stored>,
}

impl Agreement {
    /// The agreed packages: those for this interpreter, if one of two was made with it. None where nothing was said.
    pub(crate) fn environment(
        &self,
        language: Language,
        version: &str,
    ) -> Option<(&Stored, &LockEnvironment)> {
        let both = || std::iter::once(&self.stored).chain(&self.twin);
        let said = |stored: &'_ &Stored| {
            let environment = stored.lock.environment.as_ref();
            environment.is_some_and(|environment| environment.interpreter(language) == Some(version))
        };
        let stored = both().find(said).or_else(|| both().next())?;
        stored.lock.environment.as_ref().map(|environment| (stored, environment))
    }
}

impl Planned {
    /// Whether the chain may run: sound in itself and, where that is demanded, as agreed.
    pub fn require(&self) -> Result<(), Fault> {
        self.plan.require().map_err(|error| error.fault())?;
        match &self.objection {
            Some(objection) if self.mode == LockMode::Strict => Err(objection.clone()),
            _ => Ok(()),
        }
    }

    /// The lockfile as the record keeps it.
    pub(crate) fn note(&self) -> Option<LockNote> {
        self.lock.as_ref().map(|Agreement { stored, differences, .. }| LockNote {
            key: stored.key(),
            scope: stored.scope,
            digest: stored.digest,
            mode: self.mode,
            agrees: differences.is_empty(),
        })
    }

    /// Everything worth saying that does not stop the call.
    pub fn warnings(&self) -> Vec<String> {
        let objection = self.objection.iter().filter(|_| self.mode != LockMode::Strict).map(tell);
        self.plan.warnings().into_iter().chain(objection).collect()
    }
}

/// An objection that does not stop the call, with its way out.
pub(crate) fn tell(objection: &Fault) -> String {
    match &objection.hint {
        Some(hint) => format!("{}\n  {hint}", objection.message),
        None => objection.message.clone(),
    }
}

/// A lockfile as a person knows it: below the project, or below the home.
fn shown(stored: &Stored) -> String {
    let home = if stored.scope == Space::User { "~/" } else { "" };
    format!("{home}.ai/lockfiles/{}{SUFFIX}", stored.key())
}

/// What runs is not what was agreed.
pub(crate) fn mismatch(stored: &Stored, differences: &[Difference]) -> Fault {
    let (id, version) = (&stored.name.tool_id, &stored.name.version);
    let lines = differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n  ");
    let file = shown(stored);
    Fault::new(ErrorKind::LockfileMismatch, format!("`{id}@{version}` is not what `{file}` says:\n  {lines}"))
        .with_hint(format!("bring back what was agreed, or agree to this with `kiwi lockfile update {id}`"))
        .with_details(json!({"lockfile": stored.path, "scope": stored.scope, "differences": differences}))
}

/// Nothing was agreed, and something must be.
pub(crate) fn missing(plan: &Plan, ask: &ToolRef, others: &[Version]) -> Fault {
    let leaf = plan.links().first();
    let name = leaf.map_or_else(|| ask.to_string(), |link| format!("{}@{}", link.tool_id, link.version));
    let there = if others.is_empty() {
        String::new()
    } else {
        let list = others.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        format!("; there is one for {list}")
    };
    Fault::new(ErrorKind::LockfileMissing, format!("`{name}` has no lockfile{there}"))
        .with_hint(format!("`kiwi lockfile freeze {}` makes one", freeze_argument(ask)))
        .with_details(json!({"tool": name, "locked_versions": others}))
}

/// As a person would type it: with a requirement only where the call had one.
fn freeze_argument(ask: &ToolRef) -> String {
    match &ask.requirement {
        None => ask.id.to_string(),
        Some(_) => format!("'{ask}'"),
    }
}
