//! What tells that a file or folder was touched, and when that cannot be told yet.
//!
//! File systems keep times in ticks of some milliseconds, some in whole seconds. Two changes within one tick leave the
//! same times behind, so a stamp taken within a tick of the last change proves nothing (git calls such entries racy).

use rustix::fs::Stat;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::checksum::checksum;
use crate::root::wide;

/// Longer than the tick of any file system that keeps nanoseconds.
const FINE_TICK_NS: i128 = 20_000_000;
/// Longer than the tick of those that do not (FAT: two seconds).
const COARSE_TICK_NS: i128 = 2_100_000_000;
const NS: i128 = 1_000_000_000;

/// Device, inode, size and times of a file or folder. For a folder the size is left at zero: it says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Stamp {
    pub(crate) device: i64,
    pub(crate) inode: i64,
    pub(crate) size: i64,
    pub(crate) modified: (i64, i64),
    pub(crate) changed: (i64, i64),
}

/// The time, to be taken just before a stamp.
#[expect(
    clippy::disallowed_methods,
    reason = "only the file system's clock and this one together tell what is settled"
)]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}

impl Stamp {
    pub(crate) fn of_file(stat: &Stat) -> Self {
        Self { size: wide(stat.st_size), ..Self::of_folder(stat) }
    }

    pub(crate) fn of_folder(stat: &Stat) -> Self {
        Self {
            // Device and inode are compared, never computed with: past i64 the bits still tell them apart.
            device: i64::from_ne_bytes(u64_of(stat.st_dev).to_ne_bytes()),
            inode: i64::from_ne_bytes(u64_of(stat.st_ino).to_ne_bytes()),
            size: 0,
            modified: (wide(stat.st_mtime), wide(stat.st_mtime_nsec)),
            changed: (wide(stat.st_ctime), wide(stat.st_ctime_nsec)),
        }
    }

    /// Inode, size and times in one number. The device is left out: it may have another number after a restart.
    pub(crate) fn mix(&self) -> u64 {
        let Self { device: _, inode, size, modified, changed } = *self;
        let numbers = [inode, size, modified.0, modified.1, changed.0, changed.1].map(i64::to_le_bytes);
        checksum(numbers.as_flattened())
    }

    /// Whether any later change must show: `now` is the time just before the stamp was taken.
    pub(crate) fn is_settled(&self, now: SystemTime) -> bool {
        let now = match now.duration_since(UNIX_EPOCH) {
            Ok(since) => i128::try_from(since.as_nanos()).unwrap_or(i128::MAX),
            Err(_) => return false,
        };
        [self.modified, self.changed].into_iter().all(|time| has_ticked_since(time, now))
    }
}

/// Whether the file system's clock has ticked between a time of a file, in seconds and nanoseconds, and `now`, in
/// nanoseconds: only then is every later change sure to bear a later time.
pub(crate) fn has_ticked_since((seconds, nanos): (i64, i64), now: i128) -> bool {
    // A time in whole milliseconds is what a coarse clock leaves behind.
    let tick = if nanos % 1_000_000 == 0 { COARSE_TICK_NS } else { FINE_TICK_NS };
    i128::from(seconds) * NS + i128::from(nanos) + tick < now
}

fn u64_of<N: TryInto<u64>>(number: N) -> u64 {
    number.try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_stamp_is_trusted_only_when_a_tick_has_passed() {
        let at = |seconds, nanos| Stamp {
            device: 1,
            inode: 1,
            size: 0,
            modified: (seconds, nanos),
            changed: (seconds, nanos),
        };
        let now = UNIX_EPOCH + Duration::new(1000, 500_000_000);
        for (stamp, settled) in [
            (at(1000, 499_000_001), false),
            (at(1000, 479_000_001), true),
            (at(1000, 0), false),
            (at(998, 0), true),
            (at(2000, 1), false),
        ] {
            assert_eq!(stamp.is_settled(now), settled, "{stamp:?}");
        }
    }
}
