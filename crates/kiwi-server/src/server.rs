//! What all clients share.

use kiwi_gate::{Cancel, Keeping, Kernel};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

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
pub(crate) struct Going {
    calls: Arc<Mutex<(u64, HashMap<u64, Cancel>)>>,
    count: Arc<watch::Sender<usize>>,
}

impl Default for Going {
    fn default() -> Self {
        Self { calls: Arc::default(), count: Arc::new(watch::channel(0).0) }
    }
}

/// One that runs; dropped, it does no more.
pub(crate) struct GoingCall {
    number: u64,
    calls: Arc<Mutex<(u64, HashMap<u64, Cancel>)>>,
    count: Arc<watch::Sender<usize>>,
}

impl Going {
    /// Counts a call in.
    pub fn begin(&self, cancel: Cancel) -> GoingCall {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.0 += 1;
        let number = calls.0;
        calls.1.insert(number, cancel);
        self.count.send_replace(calls.1.len());
        drop(calls);
        GoingCall { number, calls: Arc::clone(&self.calls), count: Arc::clone(&self.count) }
    }

    /// Ends them all.
    pub fn end_all(&self) {
        for cancel in self.calls.lock().unwrap_or_else(PoisonError::into_inner).1.values() {
            cancel.fire();
        }
    }

    /// Resolves once none runs.
    pub async fn none(&self) {
        // The sender lives as long as `self`.
        let _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Drop for GoingCall {
    fn drop(&mut self) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.1.remove(&self.number);
        self.count.send_replace(calls.1.len());
    }
}
