//! Descriptors by their numbers.
#![expect(unsafe_code, reason = "no library has these system calls yet")]

use alloc::vec::Vec;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::{Errno, FdFlags, Result};

use super::files;
use super::raw::{call, number};

/// From this number on no descriptor is inherited by what is started.
pub fn close_on_start(from: u32) -> Result<()> {
    const CLOEXEC: usize = 4;
    // SAFETY: with this flag nothing is closed now.
    match unsafe { close_range(from, u32::MAX, CLOEXEC) } {
        // Kernels before 5.11 do not know it.
        Err(Errno::NOSYS | Errno::INVAL) => mark_each(from),
        other => other,
    }
}

fn mark_each(from: u32) -> Result<()> {
    for name in files::names_in("/proc/self/fd") {
        let number = name.to_str().ok().and_then(|name| name.parse::<i32>().ok());
        let Some(number) = number.filter(|number| number.cast_unsigned() >= from) else { continue };
        // SAFETY: the number is used for this one question, which a closed descriptor answers with an error.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        match rustix::io::fcntl_setfd(descriptor, FdFlags::CLOEXEC) {
            // The one through which the folder was read.
            Ok(()) | Err(Errno::BADF) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// # Safety
///
/// What is closed is nobody's.
// SAFETY: the caller answers for whose they are.
unsafe fn close_range(first: u32, last: u32, flags: usize) -> Result<()> {
    // SAFETY: only numbers are handed over; what is closed is the caller's promise.
    unsafe { call(number::CLOSE_RANGE, [first as usize, last as usize, flags, 0, 0, 0]) }.map(drop)
}

/// Closes every descriptor from `from` on but for these.
///
/// # Safety
///
/// Whoever owns one of the others never uses it again in this process.
// SAFETY: the caller answers for whose they are.
pub unsafe fn close_all_but(from: u32, mut kept: Vec<u32>) -> Result<()> {
    kept.sort_unstable();
    let mut next = from;
    for kept in kept.into_iter().filter(|kept| *kept >= from) {
        if let Some(last) = kept.checked_sub(1).filter(|last| *last >= next) {
            // SAFETY: the caller's promise.
            unsafe { close_range(next, last, 0) }?;
        }
        next = kept + 1;
    }
    // SAFETY: the caller's promise.
    unsafe { close_range(next, u32::MAX, 0) }
}

/// What this process was given as its standard input, under a number of its own.
pub fn take_stdin() -> Result<OwnedFd> {
    // SAFETY: whoever starts a launcher gives it one, and this program closes it nowhere.
    let stdin = unsafe { BorrowedFd::borrow_raw(0) };
    rustix::io::fcntl_dupfd_cloexec(stdin, 3)
}
