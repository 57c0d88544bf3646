//! Sandboxes, as Kiwi sees them: which backend builds the walls, what is visible inside, and the way out.
//!
//! The walls themselves are built by the launcher ([`kiwi_launcher`]). Each promise is held by more than one thing:
//!
//! | promise | first wall | second wall |
//! |---|---|---|
//! | only listed paths can be opened | a root file system that holds nothing else | landlock |
//! | writes only where declared | read-only mounts | landlock |
//! | no other process can be seen or signalled | process namespace | landlock's signal scope, where the kernel has it |
//! | no host network | network namespace with a loopback of its own | seccomp (no sockets at all at `restricted`) |
//! | no new privileges | `no_new_privs`, no capability | `nosuid` mounts |
//! | no way to loosen this | seccomp (no mounts, no namespaces, no tracing) | landlock refuses mounts too |

mod backend;
mod calls;
mod filter;
mod hosts;
mod proxy;
mod system;
mod trial;
mod view;

pub use backend::{bubblewrap, choose};

pub use hosts::Hosts;
pub use kiwi_launcher::plan::{Builder, PROXY, Sandbox, Shown};
pub use proxy::Proxy;
pub use system::TEMPORARY;
pub use trial::Trial;
pub use view::{Request, home, system_view, view};

/// Walls with this view of the host, of which the launcher has found nothing yet.
pub fn behind(builder: Builder, sockets: bool, proxy: bool, view: Vec<Shown>) -> Sandbox {
    Sandbox { builder, sockets, filters: filter::filters(sockets), proxy, view, found: Vec::new() }
}
