//! Warm loads: a process that stays asks for one lockfile after the other, by id, in no order.

use anyhow::{Result, bail};
use kiwi_model::{ToolId, Version};
use kiwi_space::Spaces;

use super::fixture::Store;
use crate::plan::spaces;
use crate::stats::{Samples, interleave};

const TURNS: usize = 20_000;

/// A process that stays.
struct Reader<'a> {
    spaces: Spaces,
    store: &'a Store,
    state: u64,
}

impl<'a> Reader<'a> {
    fn open(store: &'a Store) -> Result<Self> {
        Ok(Self { spaces: spaces(&store.project)?, store, state: 0x9e37_79b9_7f4a_7c15 })
    }

    /// Loads any one of them.
    fn any(&mut self) -> Result<()> {
        let (category, id) = self.pick()?;
        match self.spaces.locks().load(category, id, &Version::new(1, 0, 0))? {
            Some(stored) if stored.lock.root.tool_id == *id => Ok(()),
            _ => bail!("`{id}` has no lockfile of its own"),
        }
    }

    /// Asks for one that is not there, where others are.
    fn none(&mut self) -> Result<()> {
        let (category, id) = self.pick()?;
        match self.spaces.locks().load(category, id, &Version::new(2, 0, 0))? {
            None => Ok(()),
            Some(stored) => bail!("{} must not be there", stored.path.display()),
        }
    }

    fn pick(&mut self) -> Result<(&'a str, &'a ToolId)> {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let at = usize::try_from(self.state >> 16)? % self.store.entries.len().max(1);
        match self.store.entries.get(at) {
            Some((category, id)) => Ok((category, id)),
            None => bail!("there are no lockfiles"),
        }
    }
}

/// Loads among few lockfiles, and among many.
pub fn few_and_many(few: &Store, many: &Store) -> Result<(Samples, Samples)> {
    let (mut few, mut many) = (Reader::open(few)?, Reader::open(many)?);
    interleave(TURNS, || few.any(), || many.any())
}

/// Asking for what is not there, among few lockfiles and among many.
pub fn absent(few: &Store, many: &Store) -> Result<(Samples, Samples)> {
    let (mut few, mut many) = (Reader::open(few)?, Reader::open(many)?);
    interleave(TURNS, || few.none(), || many.none())
}
