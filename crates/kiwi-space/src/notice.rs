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

/// Whether all changes in a folder are made by this kernel, which then knows of them: so it is on the file systems of this
/// machine's own disks and memory.
pub(crate) fn tells_of_all(folder: &Path) -> bool {
    /// ext2 to ext4, XFS, Btrfs, tmpfs, ramfs, overlayfs, F2FS, ZFS, bcachefs.
    const OWN: [u64; 9] = [
        0xef53,
        0x5846_5342,
        0x9123_683e,
        0x0102_1994,
        0x8584_58f6,
        0x794c_7630,
        0xf2f5_2010,
        0x2fc1_2fc1,
        0xca45_1a4e,
    ];
    let kind = rustix::fs::statfs(folder).ok().and_then(|stat| u64::try_from(stat.f_type).ok());
    kind.is_some_and(|kind| OWN.contains(&kind))
}

/// Asks to be told when a folder goes elsewhere, and of nothing that is in it.
pub(crate) fn ask_where(queue: &OwnedFd, folder: &Path) -> Result<(), Errno> {
    let wanted = WatchFlags::DELETE_SELF
        | WatchFlags::MOVE_SELF
        | WatchFlags::ONLYDIR
        | WatchFlags::DONT_FOLLOW
        | WatchFlags::MASK_ADD;
    inotify::add_watch(queue, folder, wanted).map(|_| ())
}

/// Whether nothing was told since the queue was made.
pub(crate) fn is_silent(queue: &OwnedFd) -> bool {
    rustix::io::ioctl_fionread(queue) == Ok(0)
}
