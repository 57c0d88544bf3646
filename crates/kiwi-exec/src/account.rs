//! Whom the system takes this process for.

use nix::unistd::{Uid, User};

/// The account that this process runs as: its name, or its number where it has none.
pub fn account() -> String {
    let number = Uid::current();
    let known = User::from_uid(number).ok().flatten();
    known.map_or_else(|| format!("uid-{number}"), |known| known.name)
}
