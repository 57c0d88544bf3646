//! What a process may reach and how much it may use, beyond its level of isolation.

use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

use crate::container::ContainerWalls;
use crate::process::Exit;

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

/// What one call may use. A limit that cannot be enforced here is a refusal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Seconds of processor time each process of the call may use; a part of a second counts as a whole one.
    pub cpu: Option<f64>,
    /// Bytes of memory for all processes of the call together. Needs a control group.
    pub memory: Option<u64>,
    /// Processes and threads at one time. Needs a control group, or a sandbox of a user who is not root.
    pub pids: Option<u64>,
    /// Files each process may have open.
    pub files: Option<u64>,
}

impl Limits {
    /// Which of them has most likely brought about this end, and what it is. A shell tells the signal that ended its
    /// command by a code above 128.
    pub fn ended(self, exit: Exit) -> Option<String> {
        let signal = match exit {
            Exit::Signal(signal) => signal,
            Exit::Code(code) => code.checked_sub(128)?,
        };
        if signal == Signal::XCPU.as_raw() {
            let cpu = self.cpu?;
            return Some(format!("it has used the processor for the {cpu} s that `limits.cpu` allows"));
        }
        let memory = self.memory.filter(|_| signal == Signal::KILL.as_raw())?;
        Some(format!("most likely it wanted more than the {memory} bytes that `limits.memory` allows"))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_limit_that_is_set_can_have_ended_something() {
        let (none, both) =
            (Limits::default(), Limits { cpu: Some(2.0), memory: Some(64), ..Limits::default() });
        for (exit, limit) in [
            (Exit::Signal(24), Some("limits.cpu")),
            (Exit::Code(152), Some("limits.cpu")),
            (Exit::Signal(9), Some("limits.memory")),
            (Exit::Code(137), Some("limits.memory")),
            (Exit::Signal(11), None),
            (Exit::Code(9), None),
            (Exit::Code(0), None),
        ] {
            assert_eq!(none.ended(exit), None, "{exit}");
            let said = both.ended(exit);
            assert_eq!(said.is_some(), limit.is_some(), "{exit}: {said:?}");
            assert!(said.unwrap_or_default().contains(limit.unwrap_or_default()), "{exit}");
        }
    }
}
