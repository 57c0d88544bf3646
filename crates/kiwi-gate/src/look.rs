//! One look at the catalogue: whoever asks twice for the same is told the same, and nothing is read twice.

use kiwi_chain::{Candidate, Catalog, Tool};
use kiwi_model::{Fault, Space, ToolId};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use crate::catalogue::Catalogue;

/// What one plan has seen of the catalogue. A lockfile and a chain that are found by the same look fit each other,
/// whatever happens on the disk in between.
pub(crate) struct Look<'c> {
    catalogue: &'c Catalogue,
    seen: RefCell<HashMap<(ToolId, Space), Vec<Candidate>>>,
}

impl<'c> Look<'c> {
    /// A look that has seen nothing yet.
    pub fn at(catalogue: &'c Catalogue) -> Self {
        Self { catalogue, seen: RefCell::default() }
    }
}

impl Catalog for Look<'_> {
    fn candidates(&self, id: &ToolId, space: Space) -> Result<Vec<Candidate>, Fault> {
        let key = (id.clone(), space);
        if let Some(candidates) = self.seen.borrow().get(&key) {
            return Ok(candidates.clone());
        }
        let candidates = self.catalogue.candidates(id, space)?;
        self.seen.borrow_mut().insert(key, candidates.clone());
        Ok(candidates)
    }

    fn load(&self, candidate: &Candidate) -> Result<Arc<Tool>, Fault> {
        let tool = self.catalogue.load(candidate)?;
        let mut seen = self.seen.borrow_mut();
        let there = seen.get_mut(&(candidate.id.clone(), candidate.space)).into_iter().flatten();
        for same in there.filter(|it| it.version == candidate.version && it.handle == candidate.handle) {
            same.loaded = Some(Arc::clone(&tool));
        }
        Ok(tool)
    }

    fn ids(&self) -> Vec<ToolId> {
        self.catalogue.ids()
    }
}
