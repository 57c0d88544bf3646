//! What a process may reach and how much it may use, beyond its level of isolation.

use kiwi_launcher::wire::Limits;
use std::path::PathBuf;

use crate::container::ContainerWalls;

/// What a tool declared. The default declares nothing: no path, no host, no limit.
///
/// A socket that lies in a declared folder can be connected to at `sandboxed`: whoever declares a folder declares what
/// listens in it.
///
/// Paths and hosts count at [`kiwi_model::Isolation::Sandboxed`] and [`kiwi_model::Isolation::Restricted`], limits at
/// every level but [`kiwi_model::Isolation::Trusted`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Confinement {
    /// Files and folders it may read: absolute, existing, and without a symbolic link on the way.
    pub read: Vec<PathBuf>,
    /// Files and folders it may read and write, on the same terms.
    pub write: Vec<PathBuf>,
    /// Files and folders that it may make, replace and remove, whether or not they are there yet.
    ///
    /// An entry belongs to the folder around it, and a file that is mounted by itself can be neither removed nor
    /// replaced. So the nearest folder that is there is opened: inside it, and below, entries can be made, renamed,
    /// removed and written, and nothing can be read. The kernel knows no tighter right than that, and where the host has
    /// the folder below `/tmp`, which is the tool's own inside, it does not keep it from being read either.
    pub entries: Vec<PathBuf>,
    /// Folders inside declared ones that stay out of reach: inside they are empty.
    pub hidden: Vec<PathBuf>,
    /// Names under which something declared is also found: each a symbolic link inside, and where it leads.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// What it may reach.
    pub network: Network,
    /// What it may use.
    pub limits: Limits,
    /// Who builds its walls.
    pub backend: Backend,
}

/// The way out of a sandbox. At `restricted` there is none, whatever is declared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Network {
    /// Hosts that Kiwi's proxy connects to: `example.org`, `*.example.org`, an address, each also with `:port`.
    pub hosts: Vec<String>,
}

/// Who builds the walls of a sandbox. All promise the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub enum Backend {
    /// Bubblewrap where it works, otherwise Kiwi itself.
    #[default]
    Auto,
    /// The program `bwrap`, found in the search path of the process.
    Bubblewrap,
    /// Kiwi's own launcher.
    Native,
    /// A container engine.
    Container(ContainerWalls),
}
