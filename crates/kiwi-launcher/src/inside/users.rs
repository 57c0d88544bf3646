//! Users and processes of a sandbox's own.

use alloc::format;
use rustix::io::Result;

use super::Done;
use crate::kernel::files;
use crate::kernel::namespaces::{Namespaces, enter_new};
use crate::wire::{Stage, Wall};

/// The first namespaces of a sandbox, which its launcher has entered; its first process makes those that are made quickly,
/// and the process namespace begins with it. The launcher keeps its view of files.
pub struct Users {
    user: u32,
    group: u32,
}

impl Users {
    /// Enters them.
    pub fn enter() -> Done<Self> {
        let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        enter_new(Namespaces::USERS.and(Namespaces::PROCESSES))
            .map_err(Stage::Wall(Wall::Namespaces).failed())?;
        Ok(Self { user, group })
    }

    /// Says who is who in them: one user and one group, the same as outside. The first process does it, since until then
    /// its launcher has something better to do.
    pub fn introduce(&self) -> Result<()> {
        let Self { user, group } = self;
        let write = |path: &str, text: &str| files::write(files::open_to_write(path)?, text.as_bytes());
        write("/proc/self/setgroups", "deny")?;
        write("/proc/self/uid_map", &format!("{user} {user} 1"))?;
        write("/proc/self/gid_map", &format!("{group} {group} 1"))
    }
}
