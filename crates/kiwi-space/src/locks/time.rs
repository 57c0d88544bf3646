//! Times of files and of the index, in one form.

use jiff::{SignedDuration, Timestamp};
use rustix::fs::{Stat, Timespec, Timestamps, UTIME_OMIT};
use std::fs::File;
use std::time::{Duration, SystemTime};

use crate::boundary;
use crate::root::wide;
use crate::stamp;

/// How stale the time of a used lockfile may become, and how far ahead another clock may be.
pub(super) const DAY: SignedDuration = SignedDuration::from_hours(24);

/// When a file was last written or touched.
pub(super) fn modified(stat: &Stat) -> Timestamp {
    let nanos = i32::try_from(wide(stat.st_mtime_nsec)).unwrap_or(0);
    Timestamp::new(wide(stat.st_mtime), nanos).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// A time of the system. One that no calendar holds counts as long ago: then nothing is old.
pub(super) fn of_system(time: SystemTime) -> Timestamp {
    Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Reads RFC 3339.
pub(super) fn parse(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

/// The time so long before `now`; `None` where the calendar begins later.
pub(super) fn before(now: SystemTime, age: Duration) -> Option<Timestamp> {
    of_system(now).checked_sub(SignedDuration::try_from(age).ok()?).ok()
}

/// Whether `time` lies more than a day before `now`.
pub(super) fn is_day_old(time: Timestamp, now: Timestamp) -> bool {
    now.duration_since(time) > DAY
}

/// Whether a file modified then and looked at later than `at` would show any change since by its time.
pub(super) fn is_settled(modified: Timestamp, at: Timestamp) -> bool {
    stamp::has_ticked_since((modified.as_second(), modified.subsec_nanosecond().into()), at.as_nanosecond())
}

/// Sets when a file was modified, as well as that can be done: a checkout may belong to somebody else.
pub(super) fn touch(file: &File, at: Timestamp) {
    let keep = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let at = Timespec { tv_sec: at.as_second(), tv_nsec: at.subsec_nanosecond().into() };
    let _ = rustix::fs::futimens(file, &Timestamps { last_access: keep, last_modification: at });
    boundary::pass();
}
