//! Waiting for launchers that are leaving, beside everything else.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::orphans::Child;

/// Who has said its last and was not waited for yet.
struct Leaving {
    children: Vec<Child>,
    /// Whether somebody waits for them.
    is_attended: bool,
}

static LEAVING: Mutex<Leaving> = Mutex::new(Leaving { children: Vec::new(), is_attended: false });
static MORE: Condvar = Condvar::new();

/// How long a thread that has nobody to wait for stays for the next one: making one takes longer than waking it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Waits for a launcher that has said its last.
pub fn after_the_last_word(child: Child) {
    let mut leaving = leaving();
    leaving.children.push(child);
    if leaving.is_attended {
        MORE.notify_one();
    } else {
        leaving.is_attended = beside(attend);
    }
}

/// Does something in a thread of its own, if there is one to be had: without it only a zombie stays until Kiwi ends.
pub fn beside(farewell: impl FnOnce() + Send + 'static) -> bool {
    std::thread::Builder::new().name("kiwi-see-off".into()).spawn(farewell).is_ok()
}

fn attend() {
    let mut open = leaving();
    loop {
        if let Some(child) = open.children.pop() {
            drop(open);
            child.reap();
            open = leaving();
            continue;
        }
        let (next, waited) = MORE.wait_timeout(open, PATIENCE).unwrap_or_else(PoisonError::into_inner);
        open = next;
        if waited.timed_out() && open.children.is_empty() {
            open.is_attended = false;
            return;
        }
    }
}

fn leaving() -> MutexGuard<'static, Leaving> {
    LEAVING.lock().unwrap_or_else(PoisonError::into_inner)
}
