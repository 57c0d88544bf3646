//! Namespaces that the launcher makes itself.

use alloc::format;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Result;

use crate::kernel::files;
use crate::kernel::namespaces::{Namespaces, enter_new};
use crate::limits::renounce_privileges;
use crate::wire::{self, Report, Stage, Wall};

/// The first namespaces of the tool's own, which this process has entered; its first process makes those that are made
/// quickly, and the process namespace begins with it. The launcher keeps its view of files.
pub struct Users(());

impl Users {
    /// Enters them, and gives up what nobody gets who is started from here.
    pub fn enter() -> core::result::Result<Self, Report> {
        enter().map_err(Stage::Wall(Wall::Namespaces).failed())?;
        renounce_privileges().map_err(Stage::Wall(Wall::Privileges).failed())?;
        Ok(Self(()))
    }
}

fn enter() -> Result<()> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    enter_new(Namespaces::USERS.and(Namespaces::PROCESSES))?;
    let write = |path: &str, text: &str| files::write(files::open_to_write(path)?, text.as_bytes());
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("{user} {user} 1"))?;
    write("/proc/self/gid_map", &format!("{group} {group} 1"))
}

/// Makes namespaces for the first process to move into, and sends them to it: a network with nothing but a loopback, and
/// queues and shared memory with nothing in them. Without them it starts nothing.
pub fn make_others(to: &OwnedFd) -> Result<()> {
    enter_new(Namespaces::NETWORK.and(Namespaces::QUEUES))?;
    let open = |path| rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let made = [open("/proc/self/ns/net")?, open("/proc/self/ns/ipc")?];
    // It may be gone already; then it has said why.
    let _ = wire::send_all(to, &wire::frame(&())?, &made.each_ref().map(AsFd::as_fd));
    Ok(())
}
