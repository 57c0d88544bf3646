//! What was read, in memory: answers at once, and is read again in the background.

use kiwi_gate::Kernel;
use kiwi_model::Digest;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Something that is read from what the kernel knows.
pub(crate) trait Reading: Send + Sync + 'static {
    fn read(kernel: &Kernel) -> Self;
    /// What stands in for it when it cannot be read.
    fn empty() -> Self;
    /// Changes when anything of it does.
    fn digest(&self) -> Digest;
}

/// What is older is read again before a search.
const FRESH: Duration = Duration::from_secs(1);
/// What is older is read again in the background, whoever asks.
const STALE: Duration = Duration::from_secs(5);

/// What was read, and when.
type Held<R> = Mutex<Option<(Arc<R>, Instant)>>;

/// What was read, and who wants to know that it changed.
pub(crate) struct Shelf<R> {
    kernel: Arc<Kernel>,
    current: Arc<Held<R>>,
    changed: Arc<watch::Sender<Option<Digest>>>,
    is_reading: Arc<AtomicBool>,
    turn: tokio::sync::Mutex<()>,
}

impl<R: Reading> Shelf<R> {
    pub fn new(kernel: Arc<Kernel>) -> Self {
        Self {
            kernel,
            current: Arc::default(),
            changed: Arc::new(watch::channel(None).0),
            is_reading: Arc::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    fn held(&self) -> Option<(Arc<R>, Instant)> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What is known, however old. Only the very first is waited for.
    pub async fn current(&self) -> Arc<R> {
        match self.held() {
            Some((read, at)) => {
                if at.elapsed() > STALE && !self.is_reading.swap(true, Ordering::AcqRel) {
                    let (kernel, current) = (Arc::clone(&self.kernel), Arc::clone(&self.current));
                    let (changed, is_reading) = (Arc::clone(&self.changed), Arc::clone(&self.is_reading));
                    tokio::task::spawn_blocking(move || {
                        keep(&current, &changed, Arc::new(R::read(&kernel)));
                        is_reading.store(false, Ordering::Release);
                    });
                }
                read
            }
            None => self.fresh().await,
        }
    }

    /// What is known now without waiting; `None` before the first reading.
    pub fn known(&self) -> Option<Arc<R>> {
        self.held().map(|(read, _)| read)
    }

    /// What there is, at most a moment old.
    pub async fn fresh(&self) -> Arc<R> {
        let _turn = self.turn.lock().await;
        if let Some((read, at)) = self.held()
            && at.elapsed() < FRESH
        {
            return read;
        }
        let kernel = Arc::clone(&self.kernel);
        let reading = tokio::task::spawn_blocking(move || Arc::new(R::read(&kernel))).await;
        match (reading, self.held()) {
            (Ok(read), _) => {
                keep(&self.current, &self.changed, Arc::clone(&read));
                read
            }
            (Err(_), Some((read, _))) => read,
            (Err(_), None) => Arc::new(R::empty()),
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

fn keep<R: Reading>(current: &Held<R>, changed: &watch::Sender<Option<Digest>>, read: Arc<R>) {
    let digest = read.digest();
    *current.lock().unwrap_or_else(PoisonError::into_inner) = Some((read, Instant::now()));
    changed.send_if_modified(|known| {
        // The first reading is no change.
        let is_new = known.is_some_and(|known| known != digest);
        *known = Some(digest);
        is_new
    });
}
