//! When something kept was last used: the time of a file, written at most once a day.

use rustix::fs::{Timespec, Timestamps, UTIME_OMIT};
use std::fs::OpenOptions;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::{Environments, Wish, marker};
use crate::error::ExecError;

const DAY: Duration = Duration::from_hours(24);

impl Environments {
    /// Notes that an environment is used. Cheap: a file is touched at most once a day.
    pub fn used(&self, wish: &Wish, now: SystemTime) -> Result<(), ExecError> {
        note_use(&self.folder_of(wish)?.join(marker::NAME), now);
        Ok(())
    }
}

/// Sets a file's time, as well as that can be done, where it is older than a day.
pub(crate) fn note_use(file: &Path, now: SystemTime) {
    let is_fresh = |time: SystemTime| now.duration_since(time).is_ok_and(|age| age < DAY);
    let Ok(metadata) = file.metadata() else { return };
    if metadata.modified().is_ok_and(is_fresh) {
        return;
    }
    let Some(since) = now.duration_since(SystemTime::UNIX_EPOCH).ok() else { return };
    let Ok(seconds) = i64::try_from(since.as_secs()) else { return };
    let keep = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let at = Timespec { tv_sec: seconds, tv_nsec: since.subsec_nanos().into() };
    if let Ok(file) = OpenOptions::new().read(true).open(file) {
        let _ = rustix::fs::futimens(&file, &Timestamps { last_access: keep, last_modification: at });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_is_noted_once_a_day() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("marker");
        std::fs::write(&file, "").unwrap();
        let time = || file.metadata().unwrap().modified().unwrap();
        let first = SystemTime::UNIX_EPOCH + DAY * 20_000;
        std::fs::File::open(&file).unwrap().set_modified(first).unwrap();
        note_use(&file, first + DAY / 2);
        assert_eq!(time(), first, "the day is not over");
        note_use(&file, first + DAY * 2);
        assert_eq!(time(), first + DAY * 2);
        note_use(&folder.path().join("gone"), first);
    }
}
