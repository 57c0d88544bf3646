//! Calls per minute, counted over processes: the generic cell rate algorithm over one number in one locked file.
//!
//! By hand, because it is four lines of arithmetic, and what matters is the file around them: `governor` counts in the
//! memory of one process, against a clock that starts with it, and cannot be handed a state to go on from.

use jiff::Timestamp;
use kiwi_model::Digest;
use kiwi_space::{InPlace, PrivateFolder};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// A minute, in microseconds.
pub(crate) const MINUTE: i64 = 60_000_000;
/// No state is longer.
const MOST_BYTES: usize = 4096;
/// No more files stay open.
const MOST_OPEN: usize = 64;

/// What is kept of one caller and one selector. Times are microseconds since 1970.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct State {
    pub caller: String,
    pub selector: String,
    /// When all that was used will have been given back.
    pub full_at: i64,
    /// When it was last used.
    pub seen_at: i64,
}

/// One call that was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counted {
    /// What it cost.
    cost: i64,
    /// Until when the minute holds it.
    until: i64,
}

impl State {
    /// Counts a call, or says in how many microseconds it could be.
    ///
    /// A state from the future is one from before the clock was set back. It is taken to hold at most a full minute's
    /// calls: nobody waits longer than that, and nobody gets more than the pace of the limit.
    pub fn count(&mut self, limit: u64, now: i64) -> Result<Counted, i64> {
        let Some(cost) = i64::try_from(limit).ok().and_then(|limit| MINUTE.checked_div(limit)) else {
            // A limit of zero is never; one call in a minute is the soonest that means anything.
            return Err(MINUTE);
        };
        let cost = cost.max(1);
        let full_at = self.full_at.clamp(now, now.saturating_add(MINUTE));
        // Kept also where the call is refused: otherwise the wait would begin anew with every try.
        self.full_at = full_at;
        let next = full_at.saturating_add(cost);
        let wait = next.saturating_sub(now).saturating_sub(MINUTE);
        if wait > 0 {
            return Err(wait);
        }
        self.full_at = next;
        self.seen_at = now;
        Ok(Counted { cost, until: next })
    }

    /// Takes over what a file says, which is nothing while it is empty.
    fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        (self.full_at, self.seen_at) = (0, 0);
        if bytes.is_empty() {
            return Ok(());
        }
        let found: Self = serde_json::from_slice(bytes).map_err(|_| "it holds no count".to_owned())?;
        if (&found.caller, &found.selector) != (&self.caller, &self.selector) {
            return Err("it holds the count of somebody else".to_owned());
        }
        *self = found;
        Ok(())
    }

    /// Gives a call back: as much of it as time has not given back already.
    pub fn give_back(&mut self, counted: Counted) {
        let rest = counted.until.saturating_sub(self.seen_at).clamp(0, counted.cost);
        self.full_at = self.full_at.saturating_sub(rest);
    }
}

/// Why a call could not be counted.
#[derive(Debug)]
pub(crate) enum Refused {
    /// Too many; how many microseconds to wait.
    TooMany(i64),
    /// There is no place to count in.
    Nowhere,
    /// What is in this file cannot be used, and why.
    Broken(PathBuf, String),
}

/// The minutes of all callers, in a folder of the user space.
#[derive(Debug)]
pub(crate) struct Meters {
    folder: Option<PrivateFolder>,
    /// Those that count at present, by caller.
    used: Mutex<HashMap<String, Vec<Meter>>>,
}

/// The minute of one caller and one selector.
#[derive(Debug)]
struct Meter {
    file: InPlace,
    /// What was last in the file, and what it says.
    text: Vec<u8>,
    state: State,
}

impl Meters {
    /// Those of a folder.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder: folder.map(PrivateFolder::new), used: Mutex::default() }
    }

    /// Counts a call.
    pub fn count(
        &self,
        caller: &str,
        selector: &str,
        limit: u64,
        now: Timestamp,
    ) -> Result<Counted, Refused> {
        self.change(caller, selector, |state| state.count(limit, now.as_microsecond()))?
            .map_err(Refused::TooMany)
    }

    /// Gives a call back. Where that fails it stays used up, which costs a caller one call.
    pub fn give_back(&self, caller: &str, selector: &str, counted: Counted) {
        let _ = self.change(caller, selector, |state| state.give_back(counted));
    }

    fn change<T>(
        &self,
        caller: &str,
        selector: &str,
        work: impl FnOnce(&mut State) -> T,
    ) -> Result<T, Refused> {
        let Some(folder) = &self.folder else { return Err(Refused::Nowhere) };
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let own =
            used.get(caller).and_then(|own| own.iter().position(|meter| meter.state.selector == selector));
        if own.is_none() && used.values().map(Vec::len).sum::<usize>() >= MOST_OPEN {
            used.clear();
        }
        let meters = match used.get_mut(caller) {
            Some(meters) => meters,
            None => used.entry(caller.to_owned()).or_default(),
        };
        let place = own.unwrap_or(meters.len());
        if place == meters.len() {
            meters.push(Meter::new(folder, caller, selector));
        }
        let Some(meter) = meters.get_mut(place) else { return Err(Refused::Nowhere) };
        meter.change(work).map_err(|why| Refused::Broken(meter.file.path().to_owned(), why))
    }
}

impl Meter {
    fn new(folder: &PrivateFolder, caller: &str, selector: &str) -> Self {
        let mut name = Digest::of(format!("{caller}\0{selector}").as_bytes()).hex();
        name.truncate(32);
        let (caller, selector) = (caller.to_owned(), selector.to_owned());
        let state = State { caller, selector, ..State::default() };
        Self { file: folder.in_place(&(name + ".json")), text: Vec::new(), state }
    }

    fn change<T>(&mut self, work: impl FnOnce(&mut State) -> T) -> Result<T, String> {
        let Self { file, text, state } = self;
        let turn = file.turn().map_err(|error| error.to_string())?;
        let mut bytes = [0; MOST_BYTES];
        let length = turn.read(&mut bytes).map_err(|error| error.to_string())?;
        let bytes = bytes.get(..length).unwrap_or_default();
        if bytes.is_empty() || bytes != *text {
            text.clear();
            state.take(bytes)?;
            text.extend(bytes);
        }
        let before = (state.full_at, state.seen_at);
        let done = work(state);
        if (state.full_at, state.seen_at) != before {
            // Blanks fill it up to the length it had, so that a shorter state leaves nothing of a longer one behind.
            let written = serde_json::to_string(state).map_err(|error| error.to_string())?;
            *text = format!("{written:<length$}").into_bytes();
            turn.write(text).map_err(|error| {
                text.clear();
                error.to_string()
            })?;
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    fn counted(state: &mut State, limit: u64, now: i64) -> usize {
        (0..10_000).take_while(|_| state.count(limit, now).is_ok()).count()
    }

    #[test]
    fn a_minute_holds_exactly_the_limit_and_it_comes_back_evenly() {
        let start = 1_000 * MINUTE;
        for limit in [1, 2, 7, 60, 120, 999] {
            let mut state = State::default();
            assert_eq!(counted(&mut state, limit, start), usize::try_from(limit).unwrap(), "{limit}");
            let wait = state.count(limit, start).unwrap_err();
            assert!(state.count(limit, start + wait - 1).is_err(), "{limit}");
            assert!(state.clone().count(limit, start + wait).is_ok(), "{limit}");
            assert_eq!(counted(&mut state, limit, start + 2 * MINUTE), usize::try_from(limit).unwrap());
        }
        assert_eq!(State::default().count(0, start), Err(MINUTE));
    }

    #[test]
    fn over_any_time_it_is_a_full_minute_and_the_pace() {
        // However calls are spread, what was admitted between two moments is at most a full bucket and the pace.
        let (limit, start) = (12, 50 * MINUTE);
        for step in [SECOND / 7, SECOND, 4 * SECOND, 11 * SECOND] {
            let mut state = State::default();
            let times = (0..600).map(|number| start + number * step);
            let admitted = times.filter(|now| state.count(limit, *now).is_ok()).count();
            let elapsed = 599 * step;
            assert!(i64::try_from(admitted).unwrap() <= 12 + elapsed * 12 / MINUTE, "{step}: {admitted}");
        }
    }

    #[test]
    fn a_clock_that_is_set_back_gives_nothing_and_locks_nobody_out_for_more_than_a_minute() {
        let (limit, now) = (6, 1_000 * MINUTE);
        for back in [1, SECOND, MINUTE, 100 * MINUTE, now] {
            let mut state = State::default();
            assert_eq!(counted(&mut state, limit, now), 6);
            let earlier = now - back;
            let wait = state.count(limit, earlier).expect_err("more than there is");
            assert!(wait <= MINUTE, "{back}: {wait}");
            // A minute after that, at most a full minute's calls are there.
            let later = counted(&mut state, limit, earlier + MINUTE);
            assert!((1..=6).contains(&later), "{back}: {later}");
        }
        // Half used before the clock is set back: no more than the half that is left.
        let mut state = State::default();
        assert!((0..3).all(|_| state.count(limit, now).is_ok()));
        assert!(counted(&mut state, limit, now - 5 * SECOND) <= 3);
    }

    #[test]
    fn what_is_given_back_is_what_time_has_not_given_back() {
        let now = 77 * MINUTE;
        let mut state = State::default();
        let first = state.count(2, now).unwrap();
        state.give_back(first);
        assert_eq!(counted(&mut state, 2, now), 2);
        // Counted, leaked out by time, and then given back: nothing is left to give.
        let mut state = State::default();
        let first = state.count(2, now).unwrap();
        assert!(state.count(2, now + MINUTE).is_ok());
        state.give_back(first);
        assert_eq!(counted(&mut state, 2, now + MINUTE), 1);
    }
}
