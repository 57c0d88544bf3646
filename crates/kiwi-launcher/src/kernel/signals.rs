//! Signals to many, and to this process as something that can be waited for.
#![expect(unsafe_code, reason = "asks the kernel itself")]

use rustix::fd::{FromRawFd, OwnedFd};
use rustix::io::{Errno, Result};
use rustix::process::Signal;

use super::raw::{self, call, number};

/// How many bytes a set of signals has.
const SET: usize = 8;

/// Signals everybody this process may signal, but not itself.
pub fn everybody(signal: Signal) {
    let number = raw::descriptor(signal.as_raw());
    // SAFETY: only numbers are handed over.
    let _ = unsafe { call(number::KILL, [raw::descriptor(-1), number, 0, 0, 0, 0]) };
}

/// Something that is readable when a child has ended. From here on that does nothing else.
pub fn endings() -> Result<OwnedFd> {
    const BLOCK: usize = 0;
    /// Not inherited, and not waited for by whoever reads it.
    const FLAGS: usize = 0o2_000_000 | 0o4_000;
    let children: u64 = 1 << (Signal::CHILD.as_raw() - 1);
    let set = (&raw const children).expose_provenance();
    // SAFETY: the kernel reads one set of signals, which outlives both calls, and writes none.
    let descriptor = unsafe {
        call(number::RT_SIGPROCMASK, [BLOCK, set, 0, SET, 0, 0])?;
        call(number::SIGNALFD4, [raw::descriptor(-1), set, SET, FLAGS, 0, 0])?
    };
    let descriptor = i32::try_from(descriptor).map_err(|_| Errno::BADF)?;
    // SAFETY: the kernel has just opened it, for nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Makes this process take signals as one that was just started does: none is held back, and a pipe without a reader ends
/// it. For the moment before a program is started.
pub fn as_anew() {
    hold_back(0);
    end_by_pipes();
}

/// Has a pipe without a reader end this process, as ever.
pub(crate) fn end_by_pipes() {
    // What to do (as ever), with which flags, by which way back, with which others held back.
    let ordinary = [0_u64; 4];
    let pipe = raw::descriptor(Signal::PIPE.as_raw());
    let words = [pipe, ordinary.as_ptr().expose_provenance(), 0, SET, 0, 0];
    // SAFETY: the kernel reads one action, which outlives the call, and writes none.
    let _ = unsafe { call(number::RT_SIGACTION, words) };
}

/// Holds these signals back from this thread, and no others. Answers which were held back before.
pub(crate) fn hold_back(signals: u64) -> u64 {
    const SET_TO: usize = 2;
    let mut before = 0_u64;
    let words =
        [SET_TO, (&raw const signals).expose_provenance(), (&raw mut before).expose_provenance(), SET, 0, 0];
    // SAFETY: the kernel reads one set of signals and writes another, both of which outlive the call.
    let _ = unsafe { call(number::RT_SIGPROCMASK, words) };
    before
}
