//! Plans that still hold: a call that was planned in a lull means the same as long as the lull lasts.

use kiwi_chain::Form;
use kiwi_model::lockfile::LockMode;
use kiwi_model::{Space, ToolRef};
use kiwi_space::Quiet;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::agreement::Planned;

/// More are not remembered: whoever calls so many different things plans each of them rarely.
const MOST: usize = 1024;

/// The plans of one lull.
#[derive(Default)]
pub(crate) struct Remembered(Mutex<Plans>);

#[derive(Default)]
struct Plans {
    quiet: Option<Quiet>,
    known: HashMap<(ToolRef, Option<LockMode>), Arc<Planned>>,
}

impl Remembered {
    /// What was planned in this lull for what is asked.
    pub fn get(&self, quiet: Quiet, ask: &(ToolRef, Option<LockMode>)) -> Option<Arc<Planned>> {
        let plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        plans.known.get(ask).filter(|_| plans.quiet == Some(quiet)).cloned()
    }

    /// Remembers what was planned in this lull, where the kernel tells of all that it was planned from.
    pub fn keep(&self, quiet: Quiet, ask: (ToolRef, Option<LockMode>), planned: &Arc<Planned>) {
        if !has_no_files(planned) {
            return;
        }
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if plans.quiet != Some(quiet) || plans.known.len() >= MOST {
            plans.known.clear();
            plans.quiet = Some(quiet);
        }
        plans.known.insert(ask, Arc::clone(planned));
    }
}

/// Whether a chain has no files of its own on disk. Those are read, and hashed, for every call.
fn has_no_files(planned: &Planned) -> bool {
    planned.plan.tools().iter().all(|tool| tool.form == Form::Upstream || tool.space == Space::System)
}
