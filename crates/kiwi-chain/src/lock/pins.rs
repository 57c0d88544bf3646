//! The versions a lockfile agreed on, for resolution to prefer.

use kiwi_model::lockfile::Lockfile;
use kiwi_model::{Space, ToolId, Version, VersionReq};
use std::collections::BTreeMap;

use crate::catalog::Candidate;
use crate::resolve::allows;

/// Which version of which tool was agreed, and where it was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pins(BTreeMap<ToolId, (Version, Option<Space>)>);

impl From<&Lockfile> for Pins {
    fn from(lock: &Lockfile) -> Self {
        let pin = |link: &kiwi_model::lockfile::LockLink| {
            (link.tool_id.clone(), (link.version.clone(), link.space))
        };
        Self(lock.resolved_chain.iter().map(pin).collect())
    }
}

static NONE: Pins = Pins(BTreeMap::new());

impl Pins {
    /// This version of one tool, build metadata included, and nothing else.
    pub fn exactly(id: ToolId, version: Version) -> Self {
        Self(BTreeMap::from([(id, (version, None))]))
    }

    /// Nothing was agreed.
    pub fn none() -> &'static Self {
        &NONE
    }

    /// Whether anything was agreed about a tool.
    pub(crate) fn concern(&self, id: &ToolId) -> bool {
        self.0.contains_key(id)
    }

    /// Whether this is the agreed version: exactly, build metadata included. What was agreed counts as asked for, so a
    /// prerelease stays although a release came out.
    pub(crate) fn hold(&self, candidate: &Candidate, requirement: Option<&VersionReq>) -> bool {
        let agreed = self.0.get(&candidate.id).is_some_and(|(version, _)| *version == candidate.version);
        agreed && requirement.is_none_or(|requirement| allows(requirement, &candidate.version))
    }

    /// Whether this is also where it was.
    pub(crate) fn place(&self, candidate: &Candidate) -> bool {
        self.0.get(&candidate.id).is_some_and(|(_, space)| *space == Some(candidate.space))
    }
}
