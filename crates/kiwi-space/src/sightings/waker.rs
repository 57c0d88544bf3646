//! Ending a wait from outside.

use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Ends the wait of a [`super::Watcher`], from any thread.
#[derive(Debug, Clone)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    pub(super) fn new() -> Option<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        eventfd(0, flags).ok().map(|fd| Self(Arc::new(fd)))
    }

    /// Ends the wait that is under way; without one, the next.
    pub fn wake(&self) {
        // It fails only when more than 2^64 calls were not yet noticed.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }

    /// Takes all calls so far as noticed.
    pub(super) fn rest(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0_u8; 8]);
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
