//! Memory by the page.
#![expect(unsafe_code, reason = "memory is handed out and taken back")]

use core::ptr::{NonNull, null_mut};
use rustix::mm::{MapFlags, ProtFlags};

/// So many bytes that are zero, and nobody else's.
pub fn take(length: usize) -> Option<NonNull<u8>> {
    // SAFETY: where it lies is the kernel's to choose, so it lies on nothing else.
    let taken = unsafe {
        rustix::mm::mmap_anonymous(null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
    };
    taken.ok().and_then(|place| NonNull::new(place.cast()))
}

/// Gives it back.
///
/// # Safety
///
/// It was taken with this length, and nobody uses it any more.
// SAFETY: the caller answers for whose it is.
pub unsafe fn give_back(place: *mut u8, length: usize) {
    // SAFETY: the caller's promise.
    let _ = unsafe { rustix::mm::munmap(place.cast(), length) };
}
