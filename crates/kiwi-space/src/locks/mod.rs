//! Lockfiles: `lockfiles/{category}/{tool}@{version}.lock.json`, in the project and in the user space.
//!
//! A call goes straight to its file. The index beside the files is a cache for those who ask about many: whatever it
//! says is checked against names and times on disk, and whatever does not hold is read again.

#[cfg(test)]
mod crash;
mod entries;
mod folder;
mod index;
mod load;
mod merge;
mod place;
mod problem;
mod prune;
mod read;
mod reconcile;
mod store;
mod time;
mod walk;
mod writer;

pub use entries::LockEntry;
pub use load::Stored;
pub use place::is_within;
pub use problem::LockProblem;
pub use writer::{LockWriter, SaveOutcome, Saved, Slot};

use kiwi_model::Space;

use crate::error::SpaceError;
use crate::spaces::{Home, Spaces};

/// The lockfiles of the project and the user space. The system has none.
#[derive(Debug)]
pub struct Locks<'a> {
    pub(crate) spaces: &'a Spaces,
}

impl<'a> Locks<'a> {
    fn home(&self, scope: Space) -> Result<&'a Home, SpaceError> {
        self.spaces.home(scope).ok_or(SpaceError::NoSpace { space: scope })
    }

    /// The spaces that can hold lockfiles, the one that wins first.
    fn homes(&self) -> impl Iterator<Item = &'a Home> {
        self.spaces.homes()
    }
}
