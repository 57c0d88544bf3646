//! What all clients share.

use kiwi_gate::{Cancel, Keeping, Kernel};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

use crate::catalogue::{Board, Catalogue, Shelf};
use crate::outputs::Outputs;
use crate::parked::Parked;
use crate::sessions::Sessions;

/// How often it is looked whether there is something new to tell.
const GLANCE: Duration = Duration::from_secs(5);

/// The kernel, and what faces remember between requests.
pub struct Server {
    pub(crate) kernel: Arc<Kernel>,
    /// The four tools.
    pub(crate) board: Shelf<Board>,
    /// Everything under its own name.
    pub(crate) shelf: Shelf<Catalogue>,
    _keeping: Keeping,
    pub(crate) outputs: Outputs,
    pub(crate) parked: Parked,
    pub(crate) sessions: Sessions,
    pub(crate) going: Going,
}

impl Server {
    /// Faces of this kernel. What they show is read, and kept ready to be found, in the background; sandboxes are built there
    /// too, once there was a call that needed one.
    pub fn new(kernel: Arc<Kernel>) -> Arc<Self> {
        let (board, shelf) = (Shelf::new(Arc::clone(&kernel)), Shelf::new(Arc::clone(&kernel)));
        let keeping = kernel.keep_indexes();
        kernel.keep_spares();
        Arc::new(Self {
            kernel,
            board,
            shelf,
            _keeping: keeping,
            outputs: Outputs::default(),
            parked: Parked::default(),
            sessions: Sessions::default(),
            going: Going::default(),
        })
    }

    /// Looks after what grows old and what changes, for as long as it is polled.
    pub(crate) async fn tend(self: Arc<Self>) {
        let upstreams = self.kernel.upstreams();
        upstreams.freshen();
        let mut news = upstreams.news();
        loop {
            tokio::select! {
                () = tokio::time::sleep(GLANCE) => {}
                Ok(()) = news.changed() => {}
            }
            self.parked.sweep();
            self.board.refresh().await;
            self.shelf.refresh().await;
        }
    }

    /// Lets running calls end by themselves for a while, then ends them, and waits until they are gone.
    pub(crate) async fn drain(&self, patience: Duration, last: Duration) {
        self.parked.clear();
        if tokio::time::timeout(patience, self.going.none()).await.is_err() {
            self.going.end_all();
            let _ = tokio::time::timeout(last, self.going.none()).await;
        }
    }
}

/// The calls that run.
#[derive(Default)]
pub(crate) struct Going(Arc<Calls>);

#[derive(Default)]
struct Calls {
    /// By number, and the last number.
    running: Mutex<(HashMap<u64, Cancel>, u64)>,
    /// Told when the last of them has ended.
    none: Notify,
}

impl Calls {
    fn running(&self) -> MutexGuard<'_, (HashMap<u64, Cancel>, u64)> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One that runs; dropped, it does no more.
pub(crate) struct GoingCall {
    number: u64,
    calls: Arc<Calls>,
}

impl Going {
    /// Counts a call in.
    pub fn begin(&self, cancel: Cancel) -> GoingCall {
        let mut running = self.0.running();
        running.1 += 1;
        let number = running.1;
        running.0.insert(number, cancel);
        GoingCall { number, calls: Arc::clone(&self.0) }
    }

    /// Ends them all.
    pub fn end_all(&self) {
        self.0.running().0.values().for_each(Cancel::fire);
    }

    /// Resolves once none runs.
    pub async fn none(&self) {
        loop {
            let told = self.0.none.notified();
            if self.0.running().0.is_empty() {
                return;
            }
            told.await;
        }
    }
}

impl Drop for GoingCall {
    fn drop(&mut self) {
        let mut running = self.calls.running();
        running.0.remove(&self.number);
        if running.0.is_empty() {
            self.calls.none.notify_waiters();
        }
    }
}
