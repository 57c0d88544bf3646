//! Which session a client's requests belong to, where the transport has none: limits and the brake count by it.

use kiwi_gate::Session;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A client that was quiet for so long begins anew.
const QUIET: Duration = Duration::from_hours(1);
/// Clients that are told apart; further ones push out the one that was quiet longest.
const MOST: usize = 1024;

/// Sessions by what is known of a client.
#[derive(Default)]
pub(crate) struct Sessions {
    known: Mutex<HashMap<String, (Session, Instant)>>,
}

impl Sessions {
    /// The session of this client.
    pub fn of(&self, identity: &str) -> Session {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        known.retain(|_, (_, last)| now.duration_since(*last) < QUIET);
        if !known.contains_key(identity) && known.len() >= MOST {
            let quietest = known.iter().min_by_key(|(_, (_, last))| *last).map(|(name, _)| name.clone());
            quietest.map(|name| known.remove(&name));
        }
        let entry = known.entry(identity.to_owned()).or_insert_with(|| (Session::start(), now));
        entry.1 = now;
        entry.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_keeps_its_session_and_their_number_has_a_bound() {
        let sessions = Sessions::default();
        let first = sessions.of("a");
        assert_eq!(sessions.of("a"), first);
        assert_ne!(sessions.of("b"), first);
        for number in 0..MOST * 2 {
            sessions.of(&format!("c{number}"));
            sessions.of("a");
        }
        assert_eq!(sessions.of("a"), first);
        assert!(sessions.known.lock().expect("known").len() <= MOST);
    }
}
