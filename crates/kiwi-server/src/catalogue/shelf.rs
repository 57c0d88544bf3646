//! The catalogue in memory: answers at once, and is read again in the background.

use kiwi_gate::Kernel;
use kiwi_model::Digest;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

use super::Catalogue;

/// What is older is read again before a search.
const FRESH: Duration = Duration::from_secs(1);
/// What is older is read again in the background, whoever asks.
const STALE: Duration = Duration::from_secs(5);

/// What was read, and when.
type Held = Mutex<Option<(Arc<Catalogue>, Instant)>>;

/// The catalogue, and who wants to know that it changed.
pub(crate) struct Shelf {
    kernel: Arc<Kernel>,
    current: Arc<Held>,
    changed: Arc<watch::Sender<Option<Digest>>>,
    is_reading: Arc<AtomicBool>,
    turn: tokio::sync::Mutex<()>,
}

impl Shelf {
    pub fn new(kernel: Arc<Kernel>) -> Self {
        Self {
            kernel,
            current: Arc::default(),
            changed: Arc::new(watch::channel(None).0),
            is_reading: Arc::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    fn held(&self) -> Option<(Arc<Catalogue>, Instant)> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What is known, however old. Only the very first is waited for.
    pub async fn current(&self) -> Arc<Catalogue> {
        match self.held() {
            Some((catalogue, at)) => {
                if at.elapsed() > STALE && !self.is_reading.swap(true, Ordering::AcqRel) {
                    let (kernel, current) = (Arc::clone(&self.kernel), Arc::clone(&self.current));
                    let (changed, is_reading) = (Arc::clone(&self.changed), Arc::clone(&self.is_reading));
                    tokio::task::spawn_blocking(move || {
                        keep(&current, &changed, Arc::new(Catalogue::read(&kernel)));
                        is_reading.store(false, Ordering::Release);
                    });
                }
                catalogue
            }
            None => self.fresh().await,
        }
    }

    /// What is known now without waiting; `None` before the first reading.
    pub fn known(&self) -> Option<Arc<Catalogue>> {
        self.held().map(|(catalogue, _)| catalogue)
    }

    /// What there is, at most a moment old.
    pub async fn fresh(&self) -> Arc<Catalogue> {
        let _turn = self.turn.lock().await;
        if let Some((catalogue, at)) = self.held()
            && at.elapsed() < FRESH
        {
            return catalogue;
        }
        let kernel = Arc::clone(&self.kernel);
        let read = tokio::task::spawn_blocking(move || Arc::new(Catalogue::read(&kernel))).await;
        match (read, self.held()) {
            (Ok(catalogue), _) => {
                keep(&self.current, &self.changed, Arc::clone(&catalogue));
                catalogue
            }
            (Err(_), Some((catalogue, _))) => catalogue,
            (Err(_), None) => Arc::new(Catalogue::of(Vec::new())),
        }
    }

    /// Reads again, if anybody is listening.
    pub async fn refresh(&self) {
        if self.changed.receiver_count() > 0 {
            self.fresh().await;
        }
    }

    /// Tells of every change.
    pub fn changes(&self) -> watch::Receiver<Option<Digest>> {
        let mut receiver = self.changed.subscribe();
        receiver.mark_unchanged();
        receiver
    }
}

fn keep(current: &Held, changed: &watch::Sender<Option<Digest>>, catalogue: Arc<Catalogue>) {
    let digest = catalogue.digest;
    *current.lock().unwrap_or_else(PoisonError::into_inner) = Some((catalogue, Instant::now()));
    changed.send_if_modified(|known| {
        // The first reading is no change.
        let is_new = known.is_some_and(|known| known != digest);
        *known = Some(digest);
        is_new
    });
}
