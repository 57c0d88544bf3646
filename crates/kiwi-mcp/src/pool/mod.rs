//! The connections: one to each server for each set of credentials, started when it is first needed.
//!
//! A connection is kept by one task ([`live`]), which notices its end, stops it when nobody uses it, and leaves no
//! process, descriptor or task behind. What a server says is sorted before the protocol library sees it ([`heard`]):
//! progress and log lines go to the callers at once, results stay as the server gave them, and nothing it sends can take
//! more than a fixed amount of memory. No lock is held while a server is waited for.
//!
//! Read first: [`Pool`], [`Connection`], [`Surroundings`].

mod authorize;
mod calls;
mod connection;
mod entry;
mod events;
mod exchange;
mod failure;
mod follow;
mod handler;
mod heard;
mod lane;
mod lines;
mod list;
mod live;
mod oauth;
mod resolve;
mod start;
mod surroundings;
mod wire;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use authorize::{Authorize, Identity};
pub use connection::Connection;
pub use surroundings::{Change, Lookup, OnChange, Surroundings};

use crate::error::McpError;
use crate::server::{Server, ServerName};
use entry::Entry;
use resolve::Way;

/// More entries than this are looked through for those that nobody needs.
const MANY: usize = 64;

/// All connections. Dropping it ends them; [`Pool::close`] also waits until nothing of them is left.
pub struct Pool {
    inner: Arc<Inner>,
}

/// What entries and connections share.
pub(crate) struct Inner {
    around: Surroundings,
    entries: Mutex<HashMap<(ServerName, Way), Arc<Entry>>>,
    tasks: Mutex<JoinSet<()>>,
    generations: AtomicU64,
    is_closed: watch::Sender<bool>,
}

/// How one server stands.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolState {
    /// Which.
    pub name: ServerName,
    /// How.
    pub kind: StateKind,
}

/// How a server stands.
#[derive(Debug, Clone, PartialEq)]
pub enum StateKind {
    /// It is not needed.
    Idle,
    /// It is being started.
    Starting,
    /// It is up.
    Up {
        /// Another for every start and session.
        generation: u64,
        /// The revision of the protocol it speaks.
        protocol_version: String,
        /// Calls in flight.
        calls: usize,
        /// For how long.
        up: Duration,
    },
    /// It failed, and is left alone for a while.
    Resting {
        /// How often in a row.
        failures: u32,
        /// When it may be tried again.
        retry_in: Duration,
        /// Why it failed.
        why: String,
    },
}

impl Pool {
    /// A pool without connections.
    pub fn new(around: Surroundings) -> Self {
        let inner = Inner {
            around,
            entries: Mutex::default(),
            tasks: Mutex::new(JoinSet::new()),
            generations: AtomicU64::new(1),
            is_closed: watch::Sender::new(false),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The connection to a server; started if there is none. It is shared with whoever reaches it in exactly the same
    /// way, credentials included.
    pub async fn connect(&self, server: &Server) -> Result<Connection, McpError> {
        let way = Way::resolve(server, &self.inner.around)?;
        let entry = self.inner.entry(server, way);
        let live = entry.live(&self.inner, server).await?;
        Ok(Connection::new(Arc::clone(&self.inner), entry, Arc::new(server.clone()), live))
    }

    /// Forgets a server's failures, so that it may be tried again at once.
    pub fn reset(&self, name: &ServerName) {
        for entry in self.inner.named(name) {
            entry.reset();
        }
    }

    /// Ends a server's connections and waits until nothing of them is left.
    pub async fn stop(&self, name: &ServerName) {
        let lives: Vec<_> = self.inner.named(name).iter().filter_map(|entry| entry.current()).collect();
        for live in &lives {
            live.stop();
        }
        for live in lives {
            live.over().await;
        }
    }

    /// Forgets the tokens of a server that uses OAuth; says whether there were any.
    pub async fn log_out(&self, server: &Server) -> Result<bool, McpError> {
        self.stop(&server.name).await;
        match Way::resolve(server, &self.inner.around)? {
            Way::Http { url, .. } => oauth::log_out(&self.inner.around.tokens, &server.name, &url),
            Way::Stdio { .. } => Ok(false),
        }
    }

    /// How every server stands that was ever asked for.
    pub fn states(&self) -> Vec<PoolState> {
        let entries = self.inner.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let mut states: Vec<PoolState> = entries
            .values()
            .map(|entry| PoolState { name: entry.name.clone(), kind: entry.state() })
            .collect();
        states.sort_by(|left, right| left.name.cmp(&right.name));
        states
    }

    /// Ends everything and waits until nothing is left. No connection can be had afterwards.
    pub async fn close(&self) {
        self.inner.is_closed.send_replace(true);
        let mut tasks = {
            let mut tasks = self.inner.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *tasks)
        };
        let entries: Vec<_> = {
            let entries = self.inner.entries.lock().unwrap_or_else(PoisonError::into_inner);
            entries.values().cloned().collect()
        };
        for live in entries.iter().filter_map(|entry| entry.current()) {
            live.stop();
        }
        while tasks.join_next().await.is_some() {}
    }
}

impl Inner {
    fn entry(&self, server: &Server, way: Way) -> Arc<Entry> {
        let key = (server.name.clone(), way);
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = entries.get(&key) {
            return Arc::clone(known);
        }
        if entries.len() >= MANY {
            entries.retain(|_, entry| !entry.is_idle());
        }
        let entry = Arc::new(Entry::new(server, key.1.clone()));
        entries.insert(key, Arc::clone(&entry));
        entry
    }

    fn named(&self, name: &ServerName) -> Vec<Arc<Entry>> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.values().filter(|entry| entry.name == *name).cloned().collect()
    }

    fn next_generation(&self) -> u64 {
        self.generations.fetch_add(1, Ordering::Relaxed)
    }

    fn is_closed(&self) -> bool {
        *self.is_closed.borrow()
    }

    /// Starts a task that the pool waits for when it is closed; whether it did.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> bool {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        // Looked at with the lock held: closing takes the tasks under it.
        if self.is_closed() {
            return false;
        }
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
        true
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("states", &self.states()).finish_non_exhaustive()
    }
}

/// How many messages of a server's output are for the library; for fuzzing.
pub(crate) fn messages_in(bytes: &[u8]) -> usize {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().build() else { return 0 };
    runtime.block_on(async {
        let calls = Arc::new(calls::Calls::new(Arc::new(|_| {})));
        let read = std::io::Cursor::new([bytes, b"\n"].concat());
        let mut lines = lines::Lines::new(read, tokio::io::sink(), calls, Duration::from_secs(1));
        let mut count = 0;
        while rmcp::transport::Transport::receive(&mut lines).await.is_some() {
            count += 1;
        }
        count
    })
}
