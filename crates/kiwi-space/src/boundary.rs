//! Points between two writes.
//!
//! A process can be killed anywhere, but only what lies between two changes of the file system makes a difference. The
//! tests of this crate make a process die at each of these points in turn; elsewhere they are nothing.

/// A point between two writes.
#[cfg(not(test))]
#[inline]
pub(crate) fn pass() {}

#[cfg(test)]
pub(crate) use at_test::{die_at, pass};

#[cfg(test)]
mod at_test {
    use std::sync::atomic::{AtomicU64, Ordering};

    static LEFT: AtomicU64 = AtomicU64::new(0);

    /// Kills this process when it passes the point with this number, counted from 1.
    pub(crate) fn die_at(point: u64) {
        LEFT.store(point, Ordering::SeqCst);
    }

    /// A point between two writes.
    pub(crate) fn pass() {
        let counted = LEFT.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if counted == Ok(1) {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        }
    }
}
