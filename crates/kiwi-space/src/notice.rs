//! Asking the kernel to tell when something in a folder changes.

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Opens a queue of events, which is read without waiting; `None` where there is no such thing.
pub(crate) fn queue() -> Option<OwnedFd> {
    inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()
}

/// Asks for what happens to the names in a folder, for `more` besides. `None` where no folder of its own is.
pub(crate) fn ask(queue: &OwnedFd, folder: &Path, more: WatchFlags) -> Result<Option<i32>, Errno> {
    let wanted = WatchFlags::CREATE
        | WatchFlags::DELETE
        | WatchFlags::MOVE
        | WatchFlags::DELETE_SELF
        | WatchFlags::MOVE_SELF
        | WatchFlags::ATTRIB
        | WatchFlags::ONLYDIR
        | WatchFlags::DONT_FOLLOW;
    match inotify::add_watch(queue, folder, wanted | more) {
        Ok(number) => Ok(Some(number)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(error) => Err(error),
    }
}
