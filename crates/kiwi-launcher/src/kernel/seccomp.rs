//! Filters of system calls.
#![expect(unsafe_code, reason = "asks the kernel itself")]

use rustix::io::{Errno, Result};

use super::raw::{call, number};

/// One step of a filter, as the kernel reads it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// What is done.
    pub code: u16,
    /// How many steps are passed where a comparison holds.
    pub then: u8,
    /// And where it does not.
    pub otherwise: u8,
    /// With what it is done.
    pub value: u32,
}

/// A list of steps, as the kernel reads it.
#[repr(C)]
struct List {
    length: u16,
    steps: *const Step,
}

/// From here on every system call of this process, and of all it will start, is judged by these steps.
pub(crate) fn apply(steps: &[Step]) -> Result<()> {
    const SET_SECCOMP: usize = 22;
    const BY_A_FILTER: usize = 2;
    let length = u16::try_from(steps.len()).map_err(|_| Errno::INVAL)?;
    let list = List { length, steps: steps.as_ptr() };
    steps.as_ptr().expose_provenance();
    let words = [SET_SECCOMP, BY_A_FILTER, (&raw const list).expose_provenance(), 0, 0, 0];
    // SAFETY: the kernel reads the list and as many steps as it says, which both outlive the call, and writes none.
    unsafe { call(number::PRCTL, words) }.map(drop)
}
