//! Leaving what is everybody's.
#![expect(
    unsafe_code,
    reason = "no library without a C library has it without a warning about shared descriptors"
)]

use rustix::io::Result;

use super::raw::{call, number};

/// Namespaces that a process can leave its parent's for.
#[derive(Debug, Clone, Copy)]
pub struct Namespaces(usize);

impl Namespaces {
    /// What is mounted where.
    pub const MOUNTS: Self = Self(0x0002_0000);
    /// Where in the tree of control groups it seems to be.
    pub const CONTROL_GROUPS: Self = Self(0x0200_0000);
    /// The name of the host.
    pub const NAMES: Self = Self(0x0400_0000);
    /// Message queues and shared memory.
    pub const QUEUES: Self = Self(0x0800_0000);
    /// Who is who, and what may be done.
    pub const USERS: Self = Self(0x1000_0000);
    /// Which processes there are.
    pub const PROCESSES: Self = Self(0x2000_0000);
    /// Devices, addresses, ports.
    pub const NETWORK: Self = Self(0x4000_0000);

    /// Both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// By which a process is made in new ones.
    pub(super) const fn flags(self) -> usize {
        self.0
    }
}

/// Moves into new namespaces; of processes only children are in the new one.
pub fn enter_new(namespaces: Namespaces) -> Result<()> {
    // SAFETY: only numbers are handed over, and none of the flags above stops descriptors from being shared.
    unsafe { call(number::UNSHARE, [namespaces.0, 0, 0, 0, 0, 0]) }.map(drop)
}
