//! Indexing, told to whoever waits for it.

use kiwi_gate::Progress;
use kiwi_model::Space;
use std::sync::{Mutex, PoisonError};

use crate::printer::Counter;

/// Counts items aloud.
pub struct Indexing(Mutex<Counter>);

impl Default for Indexing {
    fn default() -> Self {
        Self(Mutex::new(Counter::new("items indexed:")))
    }
}

impl Progress for Indexing {
    fn at(&self, _: Space, done: u64, of: u64) {
        let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).show(number(done), number(of));
    }

    fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Counter::new("items indexed:");
    }
}
