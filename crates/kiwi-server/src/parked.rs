//! Running calls whose client went to find an answer, by a name that only it was told.

use kiwi_gate::{Cancel, Outcome, Session};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::course::Course;
use crate::random::unguessable;
use crate::voice::{Ear, Round};

/// How long a call waits for its client to come back.
const PATIENCE: Duration = Duration::from_mins(10);
/// Calls that may wait at once, and of one session.
const MOST: usize = 1024;
const MOST_OF_A_SESSION: usize = 32;

/// A call that runs, seen from its client's side. Whoever drops it ends the call.
pub(crate) struct Running {
    /// Its outcome, once there is one.
    pub done: Course<Outcome>,
    /// What it says and asks.
    pub ear: Ear,
    /// What it waits for an answer to.
    pub round: Option<Round>,
    /// Which request it belongs to: a client can come back only with the same one.
    pub about: Value,
    /// Whose it is.
    pub session: Session,
    /// Ends it.
    pub cancel: Cancel,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.cancel.fire();
        self.done.let_go();
    }
}

/// The calls that wait.
#[derive(Default)]
pub(crate) struct Parked {
    waiting: Mutex<HashMap<String, (Running, Instant)>>,
}

impl Parked {
    /// Leaves a call until its client comes back with this name; gives it back where too many wait already.
    pub fn park(&self, mut running: Running) -> Result<String, Box<Running>> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        sweep(&mut waiting);
        let own = waiting.values().filter(|(it, _)| it.session == running.session).count();
        let Some(name) = unguessable().filter(|_| waiting.len() < MOST && own < MOST_OF_A_SESSION) else {
            return Err(Box::new(running));
        };
        // Until then nobody follows it.
        running.done.let_go();
        waiting.insert(name.clone(), (running, Instant::now()));
        Ok(name)
    }

    /// The call with this name, if it waits for exactly this request of this session.
    pub fn take(&self, name: &str, about: &Value, session: Session) -> Option<Running> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        sweep(&mut waiting);
        let is_its = waiting.get(name).is_some_and(|(it, _)| it.about == *about && it.session == session);
        is_its.then(|| waiting.remove(name)).flatten().map(|(running, _)| running)
    }

    /// Ends the calls whose clients did not come back.
    pub fn sweep(&self) {
        sweep(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Ends every call that waits.
    pub fn clear(&self) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

fn sweep(waiting: &mut HashMap<String, (Running, Instant)>) {
    waiting.retain(|_, (_, since)| since.elapsed() < PATIENCE);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::voice::Voice;

    fn running(session: Session, about: &str) -> Running {
        let done = Course::new(std::future::pending());
        let (_, ear) = Voice::new(Vec::new(), None);
        let about = Value::from(about);
        Running { done, ear, round: None, about, session, cancel: Cancel::default() }
    }

    #[tokio::test]
    async fn only_the_same_request_of_the_same_session_finds_its_call() {
        let parked = Parked::default();
        let (mine, other) = (Session::start(), Session::start());
        let about = &Value::from("a");
        let name = parked.park(running(mine, "a")).ok().expect("parked");
        assert_eq!(name.len(), 64);
        assert!(parked.take(&format!("{name}-"), about, mine).is_none());
        assert!(parked.take(&name, &Value::from("b"), mine).is_none());
        assert!(parked.take(&name, about, other).is_none());
        let cancel = parked.take(&name, about, mine).expect("running").cancel.clone();
        assert!(parked.take(&name, about, mine).is_none(), "it is taken once");
        cancel.fired().await;
    }

    #[tokio::test]
    async fn a_session_cannot_fill_the_place() {
        let parked = Parked::default();
        let greedy = Session::start();
        let all: Vec<bool> = (0..100).map(|_| parked.park(running(greedy, "a")).is_ok()).collect();
        assert_eq!(all.iter().filter(|parked| **parked).count(), MOST_OF_A_SESSION);
        assert!(parked.park(running(Session::start(), "a")).is_ok());
    }
}
