//! Who is who in a sandbox, and what may be done there.

use alloc::format;
use alloc::string::{String, ToString};
use core::str::FromStr;
use rustix::io::{Errno, Result};

use super::Done;
use crate::kernel::files;
use crate::kernel::namespaces::{Namespaces, enter_new};
use crate::limits::renounce_privileges;
use crate::wire::{Stage, Wall};

/// The one user and the one group of a sandbox, the same as outside.
#[derive(Debug, Clone, Copy)]
pub struct Users {
    user: u32,
    group: u32,
}

impl Users {
    /// Those of this process.
    pub fn own() -> Self {
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        Self { user: user.as_raw(), group: group.as_raw() }
    }

    /// For a launcher that is born where nobody is known yet.
    pub fn words(self) -> [String; 2] {
        [self.user.to_string(), self.group.to_string()]
    }

    /// What these words say.
    pub fn read(words: &[&[u8]]) -> Result<Self> {
        let number = |word: &[u8]| core::str::from_utf8(word).ok().and_then(|word| u32::from_str(word).ok());
        let [user, group] = words else { return Err(Errno::INVAL) };
        let (user, group) = number(user).zip(number(group)).ok_or(Errno::INVAL)?;
        Ok(Self { user, group })
    }

    /// Has a launcher enter the first namespaces of a sandbox, and do there what it can do for its first process, which has
    /// more to do than it. The process namespace begins with the first process; the launcher keeps its view of files.
    pub fn enter(self) -> Done<()> {
        enter_new(Namespaces::USERS.and(Namespaces::PROCESSES))
            .map_err(Stage::Wall(Wall::Namespaces).failed())?;
        self.settle()
    }

    /// They are known here from now on, and nobody who is started here gets privileges.
    pub fn settle(self) -> Done<()> {
        self.introduce().map_err(Stage::Wall(Wall::Namespaces).failed())?;
        renounce_privileges().map_err(Stage::Wall(Wall::Privileges).failed())
    }

    fn introduce(self) -> Result<()> {
        let Self { user, group } = self;
        let write = |path: &str, text: &str| files::write(files::open_to_write(path)?, text.as_bytes());
        write("/proc/self/setgroups", "deny")?;
        write("/proc/self/uid_map", &format!("{user} {user} 1"))?;
        write("/proc/self/gid_map", &format!("{group} {group} 1"))
    }
}
