//! What was read, in memory: answers at once, and is read again in the background.

use kiwi_gate::Kernel;
use kiwi_model::Digest;
use kiwi_space::Quiet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Something that is read from what the kernel knows.
pub(crate) trait Reading: Send + Sync + 'static {
    /// Whether in a lull it would be read as it was before.
    const HOLDS_IN_A_LULL: bool;
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

/// What was read, when, and in which lull.
struct Held<R> {
    read: Arc<R>,
    at: Instant,
    quiet: Option<Quiet>,
}

impl<R: Reading> Held<R> {
    fn read(kernel: &Kernel) -> Self {
        // Asked for before looking: what changes while it is read has changed since.
        let quiet = R::HOLDS_IN_A_LULL.then(|| kernel.spaces().lull_of_who_stays()).flatten();
        Self { read: Arc::new(R::read(kernel)), at: Instant::now(), quiet }
    }

    /// Whether it may have become another since.
    fn is_doubtful(&self, kernel: &Kernel) -> bool {
        self.quiet.is_none() || self.quiet != kernel.spaces().lull()
    }
}

type Place<R> = Mutex<Option<Arc<Held<R>>>>;

/// What was read, and who wants to know that it changed.
pub(crate) struct Shelf<R> {
    kernel: Arc<Kernel>,
    current: Arc<Place<R>>,
    changed: Arc<watch::Sender<Option<Digest>>>,
    is_reading: Arc<AtomicBool>,
    turn: tokio::sync::Mutex<()>,
}

impl<R: Reading> Shelf<R> {
    pub fn new(kernel: Arc<Kernel>) -> Self {
        Self {
            kernel,
            current: Arc::new(Mutex::new(None)),
            changed: Arc::new(watch::channel(None).0),
            is_reading: Arc::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    fn held(&self) -> Option<Arc<Held<R>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What is known, however old. Only the very first is waited for.
    pub async fn current(&self) -> Arc<R> {
        let Some(held) = self.held() else { return self.fresh().await };
        if held.at.elapsed() > STALE
            && held.is_doubtful(&self.kernel)
            && !self.is_reading.swap(true, Ordering::AcqRel)
        {
            let (kernel, current) = (Arc::clone(&self.kernel), Arc::clone(&self.current));
            let (changed, is_reading) = (Arc::clone(&self.changed), Arc::clone(&self.is_reading));
            tokio::task::spawn_blocking(move || {
                keep(&current, &changed, Held::read(&kernel));
                is_reading.store(false, Ordering::Release);
            });
        }
        Arc::clone(&held.read)
    }

    /// What is known now without waiting; `None` before the first reading.
    pub fn known(&self) -> Option<Arc<R>> {
        self.held().map(|held| Arc::clone(&held.read))
    }

    /// What there is, at most a moment old.
    pub async fn fresh(&self) -> Arc<R> {
        let _turn = self.turn.lock().await;
        if let Some(held) = self.held()
            && (held.at.elapsed() < FRESH || !held.is_doubtful(&self.kernel))
        {
            return Arc::clone(&held.read);
        }
        let kernel = Arc::clone(&self.kernel);
        match (tokio::task::spawn_blocking(move || Held::read(&kernel)).await, self.known()) {
            (Ok(held), _) => keep(&self.current, &self.changed, held),
            (Err(_), Some(read)) => read,
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

fn keep<R: Reading>(current: &Place<R>, changed: &watch::Sender<Option<Digest>>, held: Held<R>) -> Arc<R> {
    let (read, digest) = (Arc::clone(&held.read), held.read.digest());
    *current.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(held));
    changed.send_if_modified(|known| {
        // The first reading is no change.
        let is_new = known.is_some_and(|known| known != digest);
        *known = Some(digest);
        is_new
    });
    read
}
