//! What a spare was made from. A process that is started anew would see every change of it; so a spare that was made
//! before a change is not used after it.

use kiwi_launcher::spare::MOUNTS;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

use crate::sandbox::Shown;

/// Everything that a launcher takes over from Kiwi and the host when it starts, and that others can change.
#[derive(Debug)]
pub struct Surroundings {
    /// The table of mounts, opened when it was current.
    mounts: File,
    /// The control groups Kiwi is in.
    groups: Vec<u8>,
    /// What of the host is shown.
    shown: Vec<Option<Stamp>>,
}

/// By what it is known that something is what it was: device and number; for what is copied also its size and times.
type Stamp = (u64, u64, Option<[i64; 5]>);

impl Surroundings {
    /// As they are now. `None` where they cannot be known.
    pub fn now(view: &[Shown]) -> Option<Self> {
        let mounts = File::open(MOUNTS).ok()?;
        Some(Self { mounts, groups: groups()?, shown: view.iter().map(stamp).collect() })
    }

    /// Whether they still are what they were.
    pub fn are_unchanged(&self, view: &[Shown]) -> bool {
        let mut fds = [PollFd::new(&self.mounts, PollFlags::PRI)];
        let is_mounted_alike =
            rustix::event::poll(&mut fds, Some(&Timespec::default())).is_ok_and(|changed| changed == 0);
        is_mounted_alike
            && groups().is_some_and(|groups| groups == self.groups)
            && view.iter().map(stamp).eq(self.shown.iter().copied())
    }
}

fn groups() -> Option<Vec<u8>> {
    fs::read("/proc/self/cgroup").ok()
}

fn stamp(shown: &Shown) -> Option<Stamp> {
    let (from, is_copied) = match shown {
        Shown::Bind { from, .. } | Shown::Entries { from, .. } => (from, false),
        Shown::Copy { from, .. } => (from, true),
        Shown::Empty { .. } | Shown::Private { .. } | Shown::Link { .. } | Shown::File { .. } => return None,
    };
    let file = fs::symlink_metadata(from.as_path()).ok()?;
    let contents = is_copied.then(|| {
        [file.size().cast_signed(), file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()]
    });
    Some((file.dev(), file.ino(), contents))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiwi_launcher::wire::Raw;

    #[test]
    fn what_is_replaced_or_rewritten_is_noticed() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        let (folder, file) = (path("folder"), path("file"));
        fs::create_dir(&folder).unwrap();
        fs::write(&file, "one").unwrap();
        let view = [
            Shown::Bind { from: Raw::of(&folder), at: Raw::of("/a"), write: false },
            Shown::Copy { from: Raw::of(&file), at: Raw::of("/b") },
        ];
        let now = || Surroundings::now(&view).unwrap();
        let before = now();
        assert!(before.are_unchanged(&view));
        // What is bound may change as it likes: it is seen inside.
        fs::write(folder.join("new"), "").unwrap();
        assert!(before.are_unchanged(&view));
        fs::write(&file, "other").unwrap();
        assert!(!before.are_unchanged(&view));
        let before = now();
        fs::rename(&folder, path("elsewhere")).unwrap();
        fs::create_dir(&folder).unwrap();
        assert!(!before.are_unchanged(&view));
        fs::remove_dir(&folder).unwrap();
        assert!(!before.are_unchanged(&view));
    }
}
