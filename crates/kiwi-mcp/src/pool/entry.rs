//! One server in the pool: at most one connection at a time, and a rest after failures.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

use super::calls::Calls;
use super::failure::unavailable;
use super::live::{End, Live};
use super::resolve::Way;
use super::start::{Beginning, is_set, start, whole};
use super::surroundings::Change;
use super::{Inner, StateKind};
use crate::error::McpError;
use crate::server::{Server, ServerName};

/// The rest after a first failure; it doubles with each one more.
const REST: Duration = Duration::from_millis(500);
/// The longest rest.
const LONGEST_REST: Duration = Duration::from_mins(1);
/// A connection that was up for so long did not fail because of how it began.
const PROVEN: Duration = Duration::from_secs(30);

type Started = Result<Arc<Live>, McpError>;

/// One server, reached in one way.
pub(super) struct Entry {
    pub name: ServerName,
    way: Way,
    inner: Mutex<State>,
}

struct State {
    /// As it was last asked for: times may have changed.
    server: Arc<Server>,
    phase: Phase,
    /// Failures in a row.
    failures: u32,
}

enum Phase {
    Idle,
    Starting(watch::Receiver<Option<Started>>),
    Live(Arc<Live>),
    Resting { until: Instant, why: McpError },
}

impl Entry {
    pub fn new(server: &Server, way: Way) -> Self {
        let state = State { server: Arc::new(server.clone()), phase: Phase::Idle, failures: 0 };
        Self { name: server.name.clone(), way, inner: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection: the one there is, or a new one. Whoever comes while it starts waits for the same start.
    pub async fn live(self: &Arc<Self>, pool: &Arc<Inner>, server: &Server) -> Result<Arc<Live>, McpError> {
        enum Next {
            Wait(watch::Receiver<Option<Started>>),
            See(Arc<Live>),
        }
        loop {
            let next = {
                let mut state = self.lock();
                if *state.server != *server {
                    state.server = Arc::new(server.clone());
                }
                match &state.phase {
                    Phase::Live(live) if live.is_usable() => return Ok(Arc::clone(live)),
                    Phase::Live(live) => Next::See(Arc::clone(live)),
                    Phase::Starting(started) => Next::Wait(started.clone()),
                    Phase::Resting { until, why } if *until > Instant::now() => {
                        return Err(state.resting(*until, why));
                    }
                    Phase::Idle | Phase::Resting { .. } => Next::Wait(self.start(pool, &mut state)?),
                }
            };
            match next {
                // It is on its way out; a second one beside it would be one too many.
                Next::See(live) => {
                    live.stop();
                    live.over().await;
                    self.forget(live.generation);
                }
                Next::Wait(mut started) => {
                    let end = started.wait_for(Option::is_some).await.ok().and_then(|end| end.clone());
                    return end.unwrap_or_else(|| {
                        self.abandoned();
                        Err(unavailable(self.name.as_str(), "was stopped while it started"))
                    });
                }
            }
        }
    }

    /// A start ended without a word: its task was ended.
    fn abandoned(&self) {
        let mut state = self.lock();
        if matches!(&state.phase, Phase::Starting(started) if started.has_changed().is_err()) {
            state.phase = Phase::Idle;
        }
    }

    /// Begins a start in a task of its own: the caller that wanted it first may leave, others still wait for it.
    fn start(
        self: &Arc<Self>,
        pool: &Arc<Inner>,
        state: &mut State,
    ) -> Result<watch::Receiver<Option<Started>>, McpError> {
        let (tell, started) = watch::channel(None);
        let (entry, server) = (Arc::clone(self), Arc::clone(&state.server));
        let (around, mut closed) = (pool.around.clone(), pool.is_closed.subscribe());
        let generation = pool.next_generation();
        let is_taken = pool.spawn(async move {
            let (name, on_change) = (server.name.clone(), Arc::clone(&around.on_change));
            let calls = Arc::new(Calls::new(Arc::new(move |change: Change<'_>| on_change(&name, change))));
            let parts = start(
                Beginning { server: &server, around: &around, calls, generation, closed: closed.clone() },
                &entry.way,
            )
            .await;
            let (live, keeper) = match parts {
                Ok(parts) => parts.assemble(),
                Err(error) => {
                    entry.failed(&error);
                    let _ = tell.send(Some(Err(error)));
                    return;
                }
            };
            entry.lock().phase = Phase::Live(Arc::clone(&live));
            let _ = tell.send(Some(Ok(Arc::clone(&live))));
            let idle = || entry.lock().server.idle_timeout.max(Duration::from_millis(100));
            let went = |end: &End| entry.went(&live, end);
            // Also one that is retired, of which its entry knows nothing any more, ends with the pool.
            let until_closed = async {
                is_set(&mut closed).await;
                live.stop();
                std::future::pending::<()>().await;
            };
            tokio::select! {
                () = keeper.keep(Arc::clone(&live), idle, went) => {}
                () = until_closed => {}
            }
            entry.forget(live.generation);
        });
        if !is_taken {
            return Err(unavailable(self.name.as_str(), "was stopped, as all are"));
        }
        state.phase = Phase::Starting(started.clone());
        Ok(started)
    }

    /// A start failed.
    fn failed(&self, error: &McpError) {
        let mut state = self.lock();
        // A person who has to log in is no reason to wait.
        if matches!(error, McpError::Unauthorized { .. }) {
            state.phase = Phase::Idle;
        } else {
            state.rest(error.clone());
        }
    }

    /// A connection ended.
    fn went(&self, live: &Live, end: &End) {
        let End::Crashed(why) = end else { return };
        let mut state = self.lock();
        if live.since.elapsed() >= PROVEN {
            state.failures = 0;
        }
        if matches!(&state.phase, Phase::Live(current) if current.generation == live.generation) {
            state.rest(why.clone());
        }
    }

    /// A connection is none for new calls any more.
    pub fn forget(&self, generation: u64) {
        let mut state = self.lock();
        if matches!(&state.phase, Phase::Live(live) if live.generation == generation) {
            state.phase = Phase::Idle;
        }
    }

    /// Forgets failures.
    pub fn reset(&self) {
        let mut state = self.lock();
        state.failures = 0;
        if matches!(state.phase, Phase::Resting { .. }) {
            state.phase = Phase::Idle;
        }
    }

    /// The connection, if there is one.
    pub fn current(&self) -> Option<Arc<Live>> {
        match &self.lock().phase {
            Phase::Live(live) => Some(Arc::clone(live)),
            _ => None,
        }
    }

    /// Whether nothing is known that would be lost with it.
    pub fn is_idle(&self) -> bool {
        let state = self.lock();
        matches!(state.phase, Phase::Idle) && state.failures == 0
    }

    /// How it stands.
    pub fn state(&self) -> StateKind {
        let state = self.lock();
        match &state.phase {
            Phase::Idle => StateKind::Idle,
            Phase::Starting(_) => StateKind::Starting,
            Phase::Live(live) => StateKind::Up {
                generation: live.generation,
                protocol_version: live.about.protocol_version.clone(),
                calls: live.calls.count(),
                up: live.since.elapsed(),
            },
            Phase::Resting { until, why } => StateKind::Resting {
                failures: state.failures,
                retry_in: until.saturating_duration_since(Instant::now()),
                why: why.to_string(),
            },
        }
    }
}

impl State {
    fn rest(&mut self, why: McpError) {
        self.failures = self.failures.saturating_add(1);
        let doubled = 1_u32.checked_shl(self.failures - 1).unwrap_or(u32::MAX);
        let rest = REST.saturating_mul(doubled).min(LONGEST_REST);
        self.phase = Phase::Resting { until: Instant::now() + rest, why };
    }

    /// What is told to whoever comes too early.
    fn resting(&self, until: Instant, why: &McpError) -> McpError {
        let seconds = whole(until.saturating_duration_since(Instant::now())).max(1);
        let server = self.server.name.to_string();
        let (problem, stderr) = match why {
            McpError::Unavailable { problem, stderr, .. } => (problem.clone(), stderr.clone()),
            McpError::Timeout { seconds, .. } => {
                (format!("did not answer within {seconds} s"), String::new())
            }
            McpError::LateStart { seconds, .. } => {
                (format!("was not ready within {seconds} s of its start"), String::new())
            }
            other => (format!("failed: {other}"), String::new()),
        };
        let count = self.failures;
        let problem = format!("{problem} (failure {count} in a row; it may be tried again in {seconds} s)");
        McpError::Unavailable { server, problem, stderr }
    }
}
