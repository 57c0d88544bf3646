//! One look at the catalogue: whoever asks twice for the same is told the same, and nothing is read twice.

use kiwi_chain::{Candidate, Catalog, Tool};
use kiwi_model::{Fault, Space, ToolId};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// What one plan has seen of the catalogue. A lockfile and a chain that are found by the same look fit each other,
/// whatever happens on the disk in between.
pub(crate) struct Look<'c> {
    catalogue: &'c dyn Catalog,
    seen: RefCell<HashMap<(ToolId, Space), Vec<Candidate>>>,
}

impl<'c> Look<'c> {
    /// A look that has seen nothing yet.
    pub fn at(catalogue: &'c dyn Catalog) -> Self {
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

    /// Asked when something is missing. It makes the catalogue look everywhere, so what was not found is looked for again.
    fn ids(&self) -> Vec<ToolId> {
        let ids = self.catalogue.ids();
        self.seen.borrow_mut().retain(|_, candidates| !candidates.is_empty());
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiwi_model::{ErrorKind, Version};
    use std::cell::Cell;

    /// A catalogue in which somebody publishes a version after every question.
    #[derive(Default)]
    struct Moving(Cell<u64>);

    impl Catalog for Moving {
        fn candidates(&self, id: &ToolId, space: Space) -> Result<Vec<Candidate>, Fault> {
            let version = Version::new(1, 0, self.0.replace(self.0.get() + 1));
            Ok(vec![Candidate { id: id.clone(), version, space, handle: String::new(), loaded: None }])
        }

        fn load(&self, _: &Candidate) -> Result<Arc<Tool>, Fault> {
            Err(Fault::new(ErrorKind::NotFound, "it is gone"))
        }

        fn ids(&self) -> Vec<ToolId> {
            Vec::new()
        }
    }

    /// A catalogue whose index finds nothing before it has looked everywhere.
    #[derive(Default)]
    struct Behind(Cell<bool>);

    impl Catalog for Behind {
        fn candidates(&self, id: &ToolId, space: Space) -> Result<Vec<Candidate>, Fault> {
            if self.0.get() { Moving::default().candidates(id, space) } else { Ok(Vec::new()) }
        }

        fn load(&self, candidate: &Candidate) -> Result<Arc<Tool>, Fault> {
            Moving::default().load(candidate)
        }

        fn ids(&self) -> Vec<ToolId> {
            self.0.set(true);
            Vec::new()
        }
    }

    #[test]
    fn what_is_found_by_looking_everywhere_is_seen() {
        let behind = Behind::default();
        let look = Look::at(&behind);
        let id = ToolId::parse("one").unwrap();
        let count = || look.candidates(&id, Space::Project).unwrap().len();
        assert_eq!((count(), count()), (0, 0));
        look.ids();
        assert_eq!(count(), 1);
    }

    #[test]
    fn one_look_sees_one_moment() {
        let moving = Moving::default();
        let (one, other) = (ToolId::parse("one").unwrap(), ToolId::parse("other").unwrap());
        let version = |look: &Look<'_>, id: &ToolId, space| {
            look.candidates(id, space).unwrap().pop().map(|it| it.version.to_string())
        };
        let look = Look::at(&moving);
        for _ in 0..3 {
            assert_eq!(version(&look, &one, Space::Project).as_deref(), Some("1.0.0"));
            assert_eq!(version(&look, &one, Space::User).as_deref(), Some("1.0.1"));
            assert_eq!(version(&look, &other, Space::Project).as_deref(), Some("1.0.2"));
        }
        // The next plan looks anew.
        assert_eq!(version(&Look::at(&moving), &one, Space::Project).as_deref(), Some("1.0.3"));
    }
}
