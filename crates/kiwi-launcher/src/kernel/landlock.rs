//! Rules about files, connections and signals that a process puts in force for itself and all it will start.
#![expect(unsafe_code, reason = "asks the kernel itself")]

use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use rustix::io::{Errno, Result};

use super::raw::{self, call, number};

/// What may be done with files and folders, by the version in which the kernel began to know it.
pub mod access {
    pub const EXECUTE: u64 = 1;
    pub const WRITE_FILE: u64 = 1 << 1;
    pub const READ_FILE: u64 = 1 << 2;
    pub const READ_FOLDER: u64 = 1 << 3;
    pub const REMOVE_FOLDER: u64 = 1 << 4;
    pub const REMOVE_FILE: u64 = 1 << 5;
    pub const MAKE_CHARACTER_DEVICE: u64 = 1 << 6;
    pub const MAKE_FOLDER: u64 = 1 << 7;
    pub const MAKE_FILE: u64 = 1 << 8;
    pub const MAKE_BLOCK_DEVICE: u64 = 1 << 11;
    /// The second: links and moves from folder to folder.
    pub const OF_THE_SECOND: u64 = (1 << 14) - 1;
    /// The third.
    pub const TRUNCATE: u64 = 1 << 14;
    /// The fifth: questions to devices.
    pub const ASK_DEVICES: u64 = 1 << 15;
    pub const READ: u64 = EXECUTE | READ_FILE | READ_FOLDER;
    /// What makes sense for a file that is no folder.
    pub const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | ASK_DEVICES;

    /// Everything that a kernel of this version knows.
    pub const fn known(version: u32) -> u64 {
        OF_THE_SECOND | if version >= 3 { TRUNCATE } else { 0 } | if version >= 5 { ASK_DEVICES } else { 0 }
    }
}

/// Which version of this the kernel has.
pub fn version() -> Result<u32> {
    const WHICH: usize = 1;
    // SAFETY: only numbers are handed over.
    let version = unsafe { call(number::LANDLOCK_CREATE_RULESET, [0, 0, WHICH, 0, 0, 0]) }?;
    u32::try_from(version).map_err(|_| Errno::OPNOTSUPP)
}

/// What is forbidden unless a rule allows it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Forbidden {
    /// Of [`access`].
    pub files: u64,
    /// Listening on ports and connecting to them.
    pub network: u64,
    /// Reaching those outside: by sockets without a name in a folder, by signals.
    pub others: u64,
}

/// Listening and connecting; the fourth version knows them.
pub const NETWORK: u64 = 0b11;
/// Sockets and signals; the sixth version knows them.
pub const OTHERS: u64 = 0b11;

/// Rules that are not yet in force.
#[derive(Debug)]
pub struct Rules(OwnedFd);

impl Rules {
    pub fn forbidding(forbidden: Forbidden) -> Result<Self> {
        let at = (&raw const forbidden).expose_provenance();
        // An older kernel takes what it does not know if nothing is said there.
        let words = [at, size_of::<Forbidden>(), 0, 0, 0, 0];
        // SAFETY: the kernel reads so many bytes, which outlive the call, and writes none.
        let made = unsafe { call(number::LANDLOCK_CREATE_RULESET, words) }?;
        let made = i32::try_from(made).map_err(|_| Errno::BADF)?;
        // SAFETY: the kernel has just opened it, for nobody else.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(made) }))
    }

    /// Allows this at a file or in a folder and everything below it.
    pub fn allow(&self, place: impl AsFd, allowed: u64) -> Result<()> {
        const BELOW: usize = 1;
        // Without a gap in between, so not as two fields.
        let mut rule = [0_u8; 12];
        let (front, back) = rule.split_at_mut(8);
        front.copy_from_slice(&allowed.to_ne_bytes());
        back.copy_from_slice(&place.as_fd().as_raw_fd().to_ne_bytes());
        let rules = raw::descriptor(self.0.as_raw_fd());
        let words = [rules, BELOW, rule.as_ptr().expose_provenance(), 0, 0, 0];
        // SAFETY: the kernel reads twelve bytes, which outlive the call, and writes none.
        unsafe { call(number::LANDLOCK_ADD_RULE, words) }.map(drop)
    }

    /// Puts them in force.
    pub fn enforce(&self) -> Result<()> {
        let rules = raw::descriptor(self.0.as_raw_fd());
        // SAFETY: only numbers are handed over.
        unsafe { call(number::LANDLOCK_RESTRICT_SELF, [rules, 0, 0, 0, 0, 0]) }.map(drop)
    }
}
