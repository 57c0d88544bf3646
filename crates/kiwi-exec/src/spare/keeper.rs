//! The thread that makes spares. It is there only while there is something to do or to keep.

use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use super::one::Spare;
use super::{Shared, State, Wish};

/// So long nothing must have been started before a spare is made: it takes the processor from nobody.
const QUIET: Duration = Duration::from_millis(5);
/// So long spares are kept when nothing is started any more.
const REST: Duration = Duration::from_mins(1);

enum Task {
    Make(Wish),
    SeeOff(Vec<Spare>),
    Leave(Vec<Spare>),
}

/// The whole life of the thread.
pub fn keep(shared: &Shared) {
    loop {
        match next(shared) {
            Task::Make(wish) => made(shared, Spare::make(wish)),
            Task::SeeOff(leaving) => leaving.into_iter().for_each(Spare::leave),
            Task::Leave(leaving) => return leaving.into_iter().for_each(Spare::leave),
        }
    }
}

fn made(shared: &Shared, spare: Option<Spare>) {
    let mut state = shared.state();
    state.making = None;
    let Some(spare) = spare else {
        state.failures += 1;
        return;
    };
    state.failures = 0;
    // One that was given back meanwhile, or shows what nobody has asked for lately.
    let (old, ready) =
        std::mem::take(&mut state.ready).into_iter().partition(|old| old.kind() == spare.kind());
    state.ready = ready;
    state.leaving.extend::<Vec<Spare>>(old);
    state.ready.push(spare);
}

/// Waits until there is something to do.
fn next(shared: &Shared) -> Task {
    let mut state = shared.state();
    loop {
        let waited = state.last.map_or(Duration::MAX, |last| last.elapsed());
        if state.is_over || (waited >= REST && state.wishes.is_empty()) {
            state.is_kept = false;
            state.wishes.clear();
            let mut leaving = std::mem::take(&mut state.leaving);
            leaving.append(&mut state.ready);
            return Task::Leave(leaving);
        }
        if !state.leaving.is_empty() {
            return Task::SeeOff(std::mem::take(&mut state.leaving));
        }
        let pause = if state.wishes.is_empty() { REST } else { QUIET };
        match pause.checked_sub(waited).filter(|left| !left.is_zero()) {
            Some(left) => state = wait(shared, state, left),
            None if !state.wishes.is_empty() => {
                let wish = state.wishes.remove(0);
                state.making = Some(wish.clone());
                return Task::Make(wish);
            }
            None => {}
        }
    }
}

fn wait<'a>(shared: &Shared, state: MutexGuard<'a, State>, pause: Duration) -> MutexGuard<'a, State> {
    shared.changed.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0
}
