//! What may not be done through a mount, for it and everything mounted below it.
#![expect(unsafe_code, reason = "no library has this system call yet")]

use nix::libc;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Nothing runs as its owner.
pub const NO_OWNERS: u64 = libc::MOUNT_ATTR_NOSUID;
/// Devices are no devices.
pub const NO_DEVICES: u64 = libc::MOUNT_ATTR_NODEV;
/// Nothing is written.
pub const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;

/// Adds these to what the mount has already, and to every mount below it. What the host has set stays.
pub fn add(mount: impl AsFd, attributes: u64) -> io::Result<()> {
    const BELOW: libc::c_int = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    let wanted = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let mount = mount.as_fd();
    let itself: &CStr = c"";
    // SAFETY: the kernel reads an empty string with its NUL and all of `wanted`; both outlive the call, which writes to neither.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            itself.as_ptr(),
            BELOW,
            &raw const wanted,
            size_of::<libc::mount_attr>(),
        )
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
