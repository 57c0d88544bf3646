//! What may not be done through a mount.
#![expect(unsafe_code, reason = "no library has this system call yet")]

use rustix::fd::{AsFd, AsRawFd};
use rustix::io::Result;

use super::raw::{call, descriptor, number};

/// Nothing is written.
pub const READ_ONLY: u64 = 0x1;
/// Nothing runs as its owner.
pub const NO_OWNERS: u64 = 0x2;
/// Devices are no devices.
pub const NO_DEVICES: u64 = 0x4;

/// Adds these to what a mount has already, and to every mount below it. What the host has set stays.
pub fn add(mount: impl AsFd, attributes: u64) -> Result<()> {
    const BELOW: usize = 0x1000 | 0x8000;
    // What is set, cleared, propagated, and whose users count.
    let wanted = [attributes, 0, 0, 0];
    let descriptor = descriptor(mount.as_fd().as_raw_fd());
    let itself = c"".as_ptr().expose_provenance();
    let words = [descriptor, itself, BELOW, wanted.as_ptr().expose_provenance(), size_of_val(&wanted), 0];
    // SAFETY: the kernel reads an empty string with its NUL and all of `wanted`; both outlive the call, which writes to neither.
    unsafe { call(number::MOUNT_SETATTR, words) }.map(drop)
}
