//! What is remembered about sessions, of a bounded number of them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::request::Session;

/// Something for each session; those used longest ago are forgotten.
#[derive(Debug)]
pub(crate) struct Sessions<T> {
    most: usize,
    known: Mutex<Known<T>>,
}

#[derive(Debug)]
struct Known<T> {
    all: HashMap<Session, (u64, T)>,
    clock: u64,
}

impl<T: Default> Sessions<T> {
    pub fn new(most: usize) -> Self {
        Self { most, known: Mutex::new(Known { all: HashMap::new(), clock: 0 }) }
    }

    /// Works on what is remembered about a session.
    pub fn with<R>(&self, session: Session, work: impl FnOnce(&mut T) -> R) -> R {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.clock += 1;
        let now = known.clock;
        if known.all.len() >= self.most && !known.all.contains_key(&session) {
            // Looking through all of them is rare: a new session beyond the most that are remembered.
            let oldest = known.all.iter().min_by_key(|(_, (used, _))| *used).map(|(session, _)| *session);
            if let Some(oldest) = oldest {
                known.all.remove(&oldest);
            }
        }
        let (used, value) = known.all.entry(session).or_default();
        *used = now;
        work(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_used_longest_ago_is_forgotten() {
        let sessions = Sessions::<u32>::new(2);
        let [a, b, c] = [Session::start(), Session::start(), Session::start()];
        let count = |session| {
            sessions.with(session, |count| {
                *count += 1;
                *count
            })
        };
        assert_eq!([count(a), count(b), count(a), count(c), count(a), count(b)], [1, 1, 2, 1, 3, 1]);
    }
}
