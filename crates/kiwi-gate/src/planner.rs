//! From what is asked to what would run: freely, or by what was agreed.

use kiwi_chain::{
    Caches, Catalog as _, Difference, Mode, Pins, Plan, UpstreamAction, compare, freeze, versions,
};
use kiwi_model::lockfile::{LockMode, Lockfile, short};
use kiwi_model::{Explain, Fault, ToolRef, Version};
use kiwi_space::{SpaceError, Spaces, Stored};
use serde_json::Value;
use std::sync::Arc;

use crate::agreement::{Agreement, Planned, mismatch, missing, outlived};
use crate::catalogue::Catalogue;
use crate::look::Look;
use crate::remembered::Remembered;

/// How many names of lockfiles a call without one looks through for those of other versions. A category that has more
/// must not slow it down.
const LOOKED_THROUGH: usize = 2000;

/// Plans calls.
pub(crate) struct Planner {
    pub catalogue: Catalogue,
    pub caches: Caches,
    /// How chains are validated.
    pub validation: Mode,
    /// What the configuration says about lockfiles.
    pub lock_mode: Option<LockMode>,
    /// Whether this runs unattended, where a difference must not pass unseen.
    pub unattended: bool,
    /// What need not be planned again.
    pub remembered: Remembered,
}

impl Planner {
    /// The spaces.
    pub fn spaces(&self) -> &Spaces {
        &self.catalogue.spaces
    }

    /// A look at what there is, for one plan.
    pub fn look(&self) -> Look<'_> {
        Look::at(&self.catalogue)
    }

    /// What resolves today, whatever was agreed.
    pub fn free(&self, ask: &ToolRef) -> Result<Plan, Fault> {
        self.pinned(&self.look(), ask, Pins::none())
    }

    /// What resolves with some versions preferred.
    pub fn pinned(&self, seen: &Look<'_>, ask: &ToolRef, pins: &Pins) -> Result<Plan, Fault> {
        kiwi_chain::plan(seen, ask, pins, self.validation, &self.caches).map_err(|error| error.fault())
    }

    /// What comes closest to a lockfile, and how its chain still differs.
    pub fn by(
        &self,
        seen: &Look<'_>,
        ask: &ToolRef,
        lock: &Lockfile,
    ) -> Result<(Plan, Vec<Difference>), Fault> {
        let plan = self.pinned(seen, ask, &Pins::from(lock))?;
        // What the runtime installs is looked at when it is there, not here.
        let frozen = freeze(&plan, lock.environment.clone(), &lock.generated_at);
        let frozen = frozen.map(|frozen| Lockfile { upstream: self.definition(&plan), ..frozen });
        let differences = frozen.map(|frozen| compare(lock, &frozen)).unwrap_or_default();
        Ok((plan, differences))
    }

    /// The definition of the upstream tool that a plan calls, as it stands in the book.
    pub fn definition(&self, plan: &Plan) -> Option<Value> {
        let (server, action) = plan.upstream()?;
        let UpstreamAction::Tool(name) = action else { return None };
        self.catalogue.upstreams.definition(server, &name)
    }

    /// What a call would run.
    pub fn planned(&self, ask: &ToolRef, wanted: Option<LockMode>) -> Result<Arc<Planned>, Fault> {
        let Some(quiet) = self.spaces().lull() else { return self.planned_anew(ask, wanted).map(Arc::new) };
        let key = (ask.clone(), wanted);
        if let Some(planned) = self.remembered.get(quiet, &key) {
            return Ok(planned);
        }
        let planned = Arc::new(self.planned_anew(ask, wanted)?);
        self.remembered.keep(quiet, key, &planned);
        Ok(planned)
    }

    fn planned_anew(&self, ask: &ToolRef, wanted: Option<LockMode>) -> Result<Planned, Fault> {
        let mode = self.mode(wanted);
        if mode == LockMode::Off {
            return Ok(Planned { plan: self.free(ask)?, mode, lock: None, objection: None });
        }
        let seen = self.look();
        match self.agreed(&seen, ask) {
            Ok(Some(stored)) => self.held(&seen, ask, stored, mode),
            Ok(None) => self.unheld(&seen, ask, mode),
            Err(unreadable) => {
                let plan = self.pinned(&seen, ask, Pins::none())?;
                Ok(Planned { plan, mode, lock: None, objection: Some(unreadable) })
            }
        }
    }

    /// The mode of a call: what it asks for, and never less than what the configuration demands.
    fn mode(&self, wanted: Option<LockMode>) -> LockMode {
        match wanted.max(self.lock_mode) {
            Some(mode) => mode,
            None if self.unattended && self.spaces().locks().any() => LockMode::Strict,
            None => LockMode::Warn,
        }
    }

    /// The lockfile of the nearest and highest version that has one, among those the call allows.
    pub fn agreed(&self, seen: &Look<'_>, ask: &ToolRef) -> Result<Option<Stored>, Fault> {
        for candidate in versions(seen, ask).map_err(|error| error.fault())? {
            // A version that cannot be read cannot run; if it is the one that is meant, the plan says so.
            let Ok(tool) = seen.load(&candidate) else { continue };
            match self.spaces().locks().load(&tool.category, &candidate.id, &candidate.version) {
                Ok(Some(stored)) => return Ok(Some(stored)),
                // A category that cannot be a folder cannot hold a lockfile either.
                Ok(None) | Err(SpaceError::BadPath { .. }) => {}
                Err(error) => return Err(error.fault()),
            }
        }
        Ok(None)
    }

    /// By a lockfile, or by one of its alternatives where only that one holds here.
    fn held(&self, seen: &Look<'_>, ask: &ToolRef, stored: Stored, mode: LockMode) -> Result<Planned, Fault> {
        let (plan, differences) = self.by(seen, ask, &stored.lock)?;
        if differences.is_empty() {
            let twin = self.twin(&stored);
            let lock = Some(Agreement { stored, differences, twin });
            return Ok(Planned { plan, mode, lock, objection: None });
        }
        for alternative in self.spaces().locks().alternatives(&stored) {
            let (plan, differences) = self.by(seen, ask, &alternative.lock)?;
            if differences.is_empty() {
                let lock = Some(Agreement { stored: alternative, differences, twin: None });
                return Ok(Planned { plan, mode, lock, objection: None });
            }
        }
        let objection = Some(mismatch(&stored, &differences));
        Ok(Planned { plan, mode, lock: Some(Agreement { stored, differences, twin: None }), objection })
    }

    /// Without a lockfile of the default chain: the chain as it is may still have been agreed as an alternative.
    fn unheld(&self, seen: &Look<'_>, ask: &ToolRef, mode: LockMode) -> Result<Planned, Fault> {
        let plan = self.pinned(seen, ask, Pins::none())?;
        let own = plan.tools().first().map(|leaf| {
            let (id, version) = (&leaf.manifest.tool_id, &leaf.manifest.version);
            let hash = short(&plan.chain_hash());
            self.spaces().locks().load_alternative(&leaf.category, id, version, &hash)
        });
        let own = own.transpose().map_err(|error| error.fault())?.flatten();
        let lock = own.map(|stored| Agreement { stored, differences: Vec::new(), twin: None });
        let objection = match (&lock, mode) {
            (Some(_), _) => None,
            (None, LockMode::Strict) => Some(missing(&plan, ask, &self.locked_versions(ask))),
            (None, _) => {
                let gone = self.gone(seen, ask, &plan, LOOKED_THROUGH);
                (!gone.is_empty()).then(|| outlived(&plan, ask, &gone))
            }
        };
        Ok(Planned { plan, mode, lock, objection })
    }

    /// The versions of a tool that were agreed and are gone, lowest first; none where one that was agreed is still there.
    fn gone(&self, seen: &Look<'_>, ask: &ToolRef, plan: &Plan, most: usize) -> Vec<Version> {
        let Some(leaf) = plan.tools().first() else { return Vec::new() };
        let agreed = self.spaces().locks().versions(&leaf.category, &ask.id, most);
        if agreed.is_empty() {
            return agreed;
        }
        let here = versions(seen, &ask.id.clone().into()).unwrap_or_default();
        if here.iter().any(|candidate| agreed.contains(&candidate.version)) {
            return Vec::new();
        }
        let allowed = |version: &Version| ask.requirement.as_ref().is_none_or(|asked| asked.matches(version));
        agreed.into_iter().filter(allowed).collect()
    }

    /// The lockfile of the highest version that was agreed and is gone.
    pub fn last_agreed(&self, seen: &Look<'_>, ask: &ToolRef, plan: &Plan) -> Result<Option<Stored>, Fault> {
        let highest = self.gone(seen, ask, plan, usize::MAX).pop();
        let (Some(leaf), Some(version)) = (plan.tools().first(), highest) else { return Ok(None) };
        let stored = self.spaces().locks().load(&leaf.category, &ask.id, &version);
        stored.map_err(|error| error.fault())
    }

    /// The alternative with the same chain, where the interpreter matters.
    fn twin(&self, stored: &Stored) -> Option<Stored> {
        stored.lock.environment.as_ref()?;
        let (id, version) = (&stored.name.tool_id, &stored.name.version);
        let twin =
            self.spaces().locks().load_alternative(&stored.category, id, version, &stored.lock.chain_hash);
        twin.ok().flatten().filter(|twin| twin.name != stored.name)
    }

    pub fn locked_versions(&self, ask: &ToolRef) -> Vec<Version> {
        let entries = self.spaces().locks().of(&ask.id).unwrap_or_default();
        let mut versions: Vec<Version> = entries.into_iter().map(|entry| entry.name.version).collect();
        versions.sort();
        versions.dedup();
        versions
    }
}
