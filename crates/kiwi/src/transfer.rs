//! Bytes on their way, told to whoever waits for them.

use std::sync::{Mutex, PoisonError};

use crate::printer::Counter;

/// Less is here before anybody could read about it.
const WORTH_IT: u64 = 1 << 20;

/// Counts bytes aloud.
pub struct Transfers(Mutex<Counter>);

impl Transfers {
    /// Says this before the numbers.
    pub fn new(what: &'static str) -> Self {
        Self(Mutex::new(Counter::new(what)))
    }

    /// What is told about them.
    pub fn shown(&self) -> impl Fn(u64, u64) + '_ {
        |done, of| {
            if of < WORTH_IT {
                return;
            }
            let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
            self.0.lock().unwrap_or_else(PoisonError::into_inner).show(number(done), number(of));
        }
    }
}
