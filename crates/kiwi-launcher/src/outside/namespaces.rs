//! Namespaces that the launcher makes itself.

use alloc::vec::Vec;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Result;

use crate::kernel::namespaces::{Namespaces, enter_new};
use crate::wire;

/// Makes namespaces for the first process to move into, and sends them to it, or why there are none: then it starts
/// nothing and says so.
pub fn make_others(to: &OwnedFd) {
    let (made, refused) = match others() {
        Ok(made) => (Vec::from(made), None),
        Err(errno) => (Vec::new(), Some(errno.raw_os_error())),
    };
    let lent: Vec<_> = made.iter().map(AsFd::as_fd).collect();
    // It may be gone already; then it has said why.
    let _ = wire::frame(&refused).and_then(|told| wire::send_all(to, &told, &lent));
}

/// A network with nothing but a loopback, and queues and shared memory with nothing in them.
fn others() -> Result<[OwnedFd; 2]> {
    enter_new(Namespaces::NETWORK.and(Namespaces::QUEUES))?;
    let open = |path| rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    Ok([open("/proc/self/ns/net")?, open("/proc/self/ns/ipc")?])
}
