//! Looking after lockfiles: freezing, judging and renewing them.

use kiwi_chain::{Difference, Pins, Plan, freeze};
use kiwi_exec::Progress;
use kiwi_model::lockfile::{LockName, Lockfile};
use kiwi_model::{ErrorKind, Explain, Fault, ToolId, ToolRef, Version};
use kiwi_space::Stored;

use crate::agreement::{missing, put_in_order};
use crate::kernel::Kernel;
use crate::planner::Planner;
use crate::prepare::Preparer;

/// What can be done about lockfiles beside calling by them.
#[derive(Clone, Copy)]
pub struct Lockfiles<'a> {
    pub(crate) planner: &'a Planner,
    pub(crate) preparer: &'a Preparer,
}

impl Kernel {
    /// The lockfiles of this kernel's spaces.
    pub fn lockfiles(&self) -> Lockfiles<'_> {
        Lockfiles { planner: &self.planner, preparer: &self.preparer }
    }
}

impl Lockfiles<'_> {
    /// The lockfile that a call would be held against, or the last one where every version that was agreed is gone.
    pub fn find(&self, ask: &ToolRef) -> Result<Stored, Fault> {
        let planner = self.planner;
        let look = planner.look();
        if let Some(stored) = planner.agreed(&look, ask)? {
            return Ok(stored);
        }
        let plan = planner.pinned(&look, ask, Pins::none())?;
        let last = planner.last_agreed(&look, ask, &plan)?;
        last.ok_or_else(|| missing(&plan, ask, &planner.locked_versions(ask)))
    }

    /// Freezes what resolves today, packages installed and all. A chain that could not run is never frozen.
    pub async fn freeze(&self, ask: &ToolRef, progress: Progress<'_>) -> Result<Lockfile, Fault> {
        self.frozen(&self.planner.free(ask)?, progress).await
    }

    /// Freezes one version of a tool, with whatever it runs through today.
    pub async fn freeze_version(
        &self,
        id: &ToolId,
        version: &Version,
        progress: Progress<'_>,
    ) -> Result<Lockfile, Fault> {
        let ask = ToolRef::exactly(id.clone(), version);
        let pins = Pins::exactly(id.clone(), version.clone());
        self.frozen(&self.planner.pinned(&self.planner.look(), &ask, &pins)?, progress).await
    }

    async fn frozen(&self, plan: &Plan, progress: Progress<'_>) -> Result<Lockfile, Fault> {
        plan.require().map_err(|error| error.fault())?;
        let environment = self.preparer.freeze(plan, progress).await?;
        let now = format!("{:.0}", jiff::Timestamp::now());
        let frozen = freeze(plan, environment, &now);
        let upstream = self.planner.definition(plan);
        frozen
            .map(|frozen| Lockfile { upstream, ..frozen })
            .ok_or_else(|| Fault::new(ErrorKind::Internal, "a chain without links cannot be frozen"))
    }

    /// How what is here differs from a lockfile: its versions gone or changed, or no longer a chain that may run. The
    /// packages in it are installed where they are not there yet: nothing else shows that they can still be had.
    pub async fn judge(&self, lock: &Lockfile, progress: Progress<'_>) -> Result<Vec<Difference>, Fault> {
        let ask = ToolRef::exactly(lock.root.tool_id.clone(), &lock.root.version);
        let (plan, mut differences) = self.planner.by(&self.planner.look(), &ask, lock)?;
        plan.require().map_err(|error| error.fault())?;
        if let Some(agreed) = &lock.environment {
            put_in_order(&mut differences, self.preparer.judge(&plan, agreed, progress).await?);
        }
        Ok(differences)
    }

    /// The lockfile that takes the place of another. None for an alternative whose chain is made of other tools than
    /// those chosen here: it was agreed for another set-up, and only there it can be renewed.
    pub async fn renew(
        &self,
        name: &LockName,
        old: Option<&Lockfile>,
        progress: Progress<'_>,
    ) -> Result<Option<Lockfile>, Fault> {
        let new = match self.freeze_version(&name.tool_id, &name.version, progress).await {
            // The version is gone: whichever takes its place is what there is to agree to.
            Err(Fault { kind: ErrorKind::VersionConflict, .. }) => {
                self.freeze(&name.tool_id.clone().into(), progress).await?
            }
            other => other?,
        };
        let Some(hash) = &name.alternative else { return Ok(Some(new)) };
        let ids = |lock: &Lockfile| -> Vec<ToolId> {
            lock.resolved_chain.iter().map(|link| link.tool_id.clone()).collect()
        };
        let is_same_set_up = old.map_or(*hash == new.chain_hash, |old| ids(old) == ids(&new));
        Ok(is_same_set_up.then_some(new))
    }
}
