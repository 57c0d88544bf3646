//! Users and processes of a sandbox's own.

use alloc::format;
use rustix::io::Result;

use super::Done;
use crate::kernel::files;
use crate::kernel::namespaces::{Namespaces, enter_new};
use crate::limits::renounce_privileges;
use crate::wire::{Stage, Wall};

/// Has the launcher enter the first namespaces of a sandbox, and do there what it can do for its first process, which has
/// more to do than it. The process namespace begins with the first process; the launcher keeps its view of files.
pub fn enter() -> Done<()> {
    make().map_err(Stage::Wall(Wall::Namespaces).failed())?;
    renounce_privileges().map_err(Stage::Wall(Wall::Privileges).failed())
}

/// One user and one group are in them, the same as outside.
fn make() -> Result<()> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    enter_new(Namespaces::USERS.and(Namespaces::PROCESSES))?;
    let write = |path: &str, text: &str| files::write(files::open_to_write(path)?, text.as_bytes());
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("{user} {user} 1"))?;
    write("/proc/self/gid_map", &format!("{group} {group} 1"))
}
