//! The audit log: what was asked, decided and done, so that nobody can change it later without it showing.
//!
//! # What is where
//!
//! * `.ai/logs/audit/DAY/SESSION.jsonl`: the lines, one file per session and day. `prev` links the lines of a file.
//! * `.ai/logs/audit.journal`: one entry per line, over all files, in the order in which they were written; each entry
//!   is linked to the one before. Its lock (`flock`) is the lock of the log: processes write one after the other.
//! * `~/.ai/audit/heads/ID` in the user space: the *head*. It says where the journal ends (number and hash), signed by
//!   the user's key at checkpoints, and keeps the lines since the last checkpoint word for word.
//!
//! # How a group is written
//!
//! Callers that come together share one sync (`AuditLog::append`). Under the lock, the writer
//!
//! 1. writes the group's lines and entries into the head and syncs it (the only sync a call waits for),
//! 2. writes the lines into the session files and the entries into the journal,
//! 3. writes `done` into the head, with the next group or when it closes the log.
//!
//! Every 256 lines a checkpoint syncs the session files, their folders and the journal, and begins a new head behind
//! them, signed. Whoever comes to a head on which nothing is left to do reads its two ends; whoever settles it, puts
//! something back from it, or verifies it reads all of it.
//!
//! # Why a crash never looks like tampering, nor tampering like a crash
//!
//! *What stands in a file was in the head before, on disk.* So a line or entry that the head (or the journal behind it)
//! does not know was put there by somebody else, whatever happened to the machine.
//!
//! *What the head knows may be missing from the files in two cases only.* A writer was killed between 1 and 3: then the
//! last group of the head has no `done`, and only lines of that group may be missing. Or the machine went down: then
//! the boot that the head was begun in is not this one, and lines since the last checkpoint may be missing, since nobody
//! synced them where they are. In both cases whoever takes the lock next puts back the very words that the head has
//! kept, and notes how many lines that were. In all other cases a missing line is a finding; and what an attacker cuts
//! off while one of the two applies comes back, so that nothing is gained by it.
//!
//! *The head itself* is replaced by renaming a synced file; its torn end (a group that nobody was told is written) is
//! cut off. It can be missing only if somebody took it away.
//!
//! A sync that fails refuses the group and puts the log in doubt: the kernel may have dropped what it could not write,
//! and will not say so twice. The next group first writes everything since the checkpoint again, into files that are
//! synced anew, and only then goes on.
//!
//! Order is by number. `at` is what the clock said; nothing is decided by it.
//!
//! What an attacker can do who holds the user's own files and key is told in the guide (`audit.md`).

mod anchor;
mod calls;
mod check;
mod export;
mod head;
mod moment;
mod place;
mod read;
mod recover;
mod session;
mod signed;
#[cfg(test)]
mod tests;
mod veil;
mod verify;
mod writer;

use kiwi_model::record::Record;
use kiwi_model::{ErrorKind, Fault};
use serde_json::json;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

pub use calls::{AuditCall, CallState};
pub use check::{Finding as AuditFinding, Verification};
pub use export::ExportFormat;
pub use read::{Audit, AuditLine};

pub(crate) use place::Place;
pub(crate) use veil::{Veiled, veil, veil_unchecked};

use crate::request::Session;
use writer::{Item, Patience, Writer};

/// So many records at most share a sync.
const LARGEST_GROUP: usize = 1024;

/// How sure a caller must be before it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// On disk: a crash of the machine cannot lose it.
    OnDisk,
    /// In the next group: whoever writes now writes it too, and nobody waits for that.
    Buffered,
}

/// Appends records to the log of a space.
#[derive(Debug, Clone)]
pub(crate) struct AuditLog {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    /// `None` where there is no place for a log.
    writer: Mutex<Option<Writer>>,
    /// How many calls are on their way that append before they end.
    attending: AtomicUsize,
    /// How long groups have waited for the disk, in nanoseconds.
    waited: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<Waiting>,
    /// Somebody is about to write, or writing.
    is_led: bool,
}

#[derive(Debug)]
struct Waiting {
    item: Item,
    told: Option<oneshot::Sender<Result<(), String>>>,
}

impl AuditLog {
    /// A log at this place; without one every call is refused.
    pub fn new(place: Option<Place>) -> Self {
        let writer = place.map(Writer::new);
        let waited = writer.as_ref().map(|writer| Arc::clone(&writer.waited)).unwrap_or_default();
        let writer = Mutex::new(writer);
        let shared = Shared { queue: Mutex::default(), writer, attending: AtomicUsize::new(0), waited };
        Self { shared: Arc::new(shared) }
    }

    /// How long groups have waited for the disk, in microseconds.
    pub fn waited_us(&self) -> u64 {
        self.shared.waited.load(Ordering::Relaxed) / 1000
    }

    /// Says that a call has begun that will append.
    pub fn attend(&self) -> Attending {
        self.shared.attending.fetch_add(1, Ordering::Relaxed);
        Attending(Arc::clone(&self.shared))
    }

    /// Appends a record. An error means that it is not in the log.
    ///
    /// The first to come leads: it lets others join, unless there is nobody else, then writes for all of them. Alone, it
    /// does so where it is; with company, or while another process writes, on a thread that may wait, so that yet others
    /// can join the next group.
    pub async fn append(
        &self,
        session: Session,
        record: impl Into<Arc<Record>>,
        durability: Durability,
    ) -> Result<(), Fault> {
        let mut item = Item { session, record: record.into(), problem: None };
        let is_alone = self.shared.attending.load(Ordering::Relaxed) == 1;
        let leader = if is_alone { self.lead() } else { None };
        if let Some(leader) = &leader
            && leader.try_now()
        {
            let outcome = leader.commit(std::slice::from_mut(&mut item));
            return item.problem.map_or(outcome, Err).map_err(|why| refused(&why));
        }
        let (told, outcome) = oneshot::channel();
        let joined = self.join(Waiting { item, told: Some(told) });
        if let Some(leader) = leader.or(joined) {
            if !is_alone {
                tokio::task::yield_now().await;
            }
            if leader.is_alone() && leader.try_now() {
                drop(leader);
            } else {
                tokio::task::spawn_blocking(move || drop(leader));
            }
        } else if durability == Durability::Buffered {
            return Ok(());
        }
        let outcome = outcome.await.unwrap_or_else(|_| Err("whoever was writing it gave up".into()));
        outcome.map_err(|why| refused(&why))
    }

    /// Appends a record from where nothing can be awaited: now, or with the group that is being written.
    pub fn append_now(&self, session: Session, record: impl Into<Arc<Record>>) {
        drop(self.join(Waiting { item: Item { session, record: record.into(), problem: None }, told: None }));
    }

    /// Stands in line with others, and leads where nobody does.
    fn join(&self, waiting: Waiting) -> Option<Leader> {
        let mut queue = lock(&self.shared.queue);
        queue.waiting.push(waiting);
        let leads = !std::mem::replace(&mut queue.is_led, true);
        leads.then(|| Leader(Arc::clone(&self.shared)))
    }

    /// Leads, where nobody does.
    fn lead(&self) -> Option<Leader> {
        let leads = !std::mem::replace(&mut lock(&self.shared.queue).is_led, true);
        leads.then(|| Leader(Arc::clone(&self.shared)))
    }
}

/// A call that will append; it has ended when this is dropped.
#[derive(Debug)]
pub(crate) struct Attending(Arc<Shared>);

impl Drop for Attending {
    fn drop(&mut self) {
        self.0.attending.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The duty to write what waits. It cannot be lost: whoever lets go of it has done it, also where a call was given up or
/// the runtime ends.
struct Leader(Arc<Shared>);

impl Leader {
    fn is_alone(&self) -> bool {
        lock(&self.0.queue).waiting.len() <= 1
    }

    /// Whether nobody has to be waited for; then the lock is held.
    fn try_now(&self) -> bool {
        let Ok(mut writer) = self.0.writer.try_lock() else { return false };
        // An error shows again when it is written.
        writer.as_mut().is_none_or(|writer| writer.hold(Patience::Tries).unwrap_or(true))
    }

    fn commit(&self, items: &mut [Item]) -> Result<(), String> {
        match lock(&self.0.writer).as_mut() {
            Some(writer) => writer.commit(items),
            None => Err("there is no user space to vouch for it".into()),
        }
    }

    fn next_group(&self) -> Option<Vec<Waiting>> {
        let mut queue = lock(&self.0.queue);
        if queue.waiting.is_empty() {
            queue.is_led = false;
            return None;
        }
        let many = queue.waiting.len().min(LARGEST_GROUP);
        Some(queue.waiting.drain(..many).collect())
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        while let Some(group) = self.next_group() {
            let (mut items, told): (Vec<Item>, Vec<_>) =
                group.into_iter().map(|waiting| (waiting.item, waiting.told)).unzip();
            let outcome = self.commit(&mut items);
            for (item, told) in items.into_iter().zip(told) {
                let outcome = item.problem.map_or_else(|| outcome.clone(), Err);
                // Whoever has gone does not want to know.
                let _ = told.map(|told| told.send(outcome));
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refused(why: &str) -> Fault {
    Fault::new(ErrorKind::Denied, format!("the call cannot be recorded, so it does not happen: {why}"))
        .with_hint("make `.ai/logs`, the `.ai/audit` of your user space and the file that its `audit.anchor` names writable, or name another user space with KIWI_USER_SPACE")
        .with_details(json!({"reason": {"kind": "policy", "policy_id": "audit", "policy_reason": why}}))
}

/// The time of a record.
pub(crate) fn now() -> String {
    let now = jiff::Timestamp::now();
    format!("{now:.6}")
}

fn today() -> String {
    jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date().to_string()
}
