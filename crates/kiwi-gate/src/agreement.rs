//! A plan held against what was agreed, and what follows from a difference.

use kiwi_chain::{Difference, Field, Plan};
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
    /// The same plan, and what else differs from its lockfile. All differences are told at once.
    pub(crate) fn differing(&self, stored: &Stored, environment: Vec<Difference>) -> Self {
        let mut differences = self.lock.as_ref().map(|lock| lock.differences.clone()).unwrap_or_default();
        put_in_order(&mut differences, environment);
        let objection = Some(mismatch(stored, &differences));
        let lock = Some(Agreement { stored: stored.clone(), differences, twin: None });
        Self { plan: self.plan.clone(), mode: self.mode, lock, objection }
    }

    /// The same plan, which what is to be compared speaks against.
    pub(crate) fn refused(&self, objection: Fault) -> Self {
        Self { plan: self.plan.clone(), mode: self.mode, lock: self.lock.clone(), objection: Some(objection) }
    }

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

/// Puts differences of environments where they are told: behind those of the chain, before the upstream definition.
pub(crate) fn put_in_order(differences: &mut Vec<Difference>, environment: Vec<Difference>) {
    let upstream = differences.iter().position(|difference| difference.field == Field::Upstream);
    let at = upstream.unwrap_or(differences.len());
    differences.splice(at..at, environment);
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

/// Something was agreed, for versions that are gone.
pub(crate) fn outlived(plan: &Plan, ask: &ToolRef, gone: &[Version]) -> Fault {
    let fault = missing(plan, ask, gone);
    let hint = format!(
        "`kiwi lockfile update {}` agrees to what is here now, `kiwi lockfile freeze {}` keeps the old lockfile beside it",
        ask.id,
        freeze_argument(ask)
    );
    Fault { message: format!("{}, which is not here any more", fault.message), ..fault }.with_hint(hint)
}

/// As a person would type it: with a requirement only where the call had one.
fn freeze_argument(ask: &ToolRef) -> String {
    match &ask.requirement {
        None => ask.id.to_string(),
        Some(_) => format!("'{ask}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_is_told_before_the_upstream_definition() {
        let difference =
            |field| Difference { position: None, tool: None, field, name: None, old: None, new: None };
        let fields = |fields: &[Field]| fields.iter().copied().map(difference).collect::<Vec<_>>();
        let mut differences = fields(&[Field::Space, Field::Upstream]);
        put_in_order(&mut differences, fields(&[Field::Interpreter, Field::Package]));
        let all = [Field::Space, Field::Interpreter, Field::Package, Field::Upstream];
        assert_eq!(differences, fields(&all));
        let mut differences = fields(&[Field::Length]);
        put_in_order(&mut differences, fields(&[Field::Interpreter]));
        assert_eq!(differences, fields(&[Field::Length, Field::Interpreter]));
    }
}
