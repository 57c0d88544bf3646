//! What tells that something may have changed.

use rustix::fs::{AtFlags, FileType, Stat, statat};
use rustix::io::Errno;
use std::os::fd::BorrowedFd;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::checksum::{checksum, join};
use crate::root::Root;
use crate::stamp::{Stamp, now};
use crate::tree;

/// The moment before anything was looked at.
#[derive(Clone, Copy)]
pub(super) struct Moment(SystemTime);

/// The state of a file, or of many together.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    sum: u64,
    /// Whether any later change must show.
    is_settled: bool,
}

impl Moment {
    pub(super) fn now() -> Self {
        Self(now())
    }

    /// The stamp of a mark. Where a later change could leave the same mark behind, one that will not be met again.
    pub(super) fn stamp(self, mark: Mark) -> u64 {
        if mark.is_settled {
            return mark.sum;
        }
        let since = self.0.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        join(mark.sum, u64::try_from(since).unwrap_or(u64::MAX))
    }

    /// The mark of an entry of an open folder; `None` where there is none. `relative` is its path in the space.
    pub(super) fn entry(
        self,
        root: &Root,
        folder: BorrowedFd<'_>,
        name: &str,
        relative: impl FnOnce() -> String,
    ) -> Option<Mark> {
        match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Some(self.seen(root, &stat, relative)),
            Err(Errno::NOENT | Errno::NOTDIR) => None,
            // It cannot be read either. When it can, it has another mark.
            Err(error) => {
                Some(Mark { sum: u64::from(error.raw_os_error().unsigned_abs()), is_settled: true })
            }
        }
    }

    /// The mark of a file of the space, whether or not it is there.
    pub(super) fn file(self, root: &Root, relative: &str) -> Mark {
        self.entry(root, root.fd(), relative, || relative.to_owned()).unwrap_or_default()
    }

    /// The mark of a folder with everything in it. Where it holds what no tool may hold, of what was seen until then.
    pub(super) fn tree(self, root: &Root, relative: &str) -> Mark {
        let mut mark = self.file(root, relative);
        let _ = tree::walk(root, relative, &mut |met| {
            let entry = self.entry(root, met.folder, met.name, || format!("{relative}/{}", met.path));
            let entry = entry.unwrap_or_default();
            // A sum, because folders are read in no order.
            let sum = join(checksum(met.path.as_bytes()), entry.sum);
            mark.sum = mark.sum.wrapping_add(sum);
            mark.is_settled &= entry.is_settled;
        });
        mark
    }

    fn seen(self, root: &Root, stat: &Stat, relative: impl FnOnce() -> String) -> Mark {
        let own = self.of(stat);
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            return own;
        }
        let target = root.stat_through(&relative());
        own.and(target.map(|stat| self.of(&stat)).unwrap_or_default())
    }

    fn of(self, stat: &Stat) -> Mark {
        let stamp = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Stamp::of_folder(stat),
            _ => Stamp::of_file(stat),
        };
        Mark { sum: stamp.mix(), is_settled: stamp.is_settled(self.0) }
    }
}

impl Mark {
    /// Both together, in this order.
    pub(super) fn and(self, other: Self) -> Self {
        Self { sum: join(self.sum, other.sum), is_settled: self.is_settled && other.is_settled }
    }
}

/// The mark of what is not there.
impl Default for Mark {
    fn default() -> Self {
        Self { sum: 0, is_settled: true }
    }
}
