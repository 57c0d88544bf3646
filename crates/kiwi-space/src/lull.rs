//! A lull: the kernel knows of no change in what calls are planned from, and in what clients are shown.
//!
//! A process that stays plans the same call over and over, and every plan looks at the same folders. After some plans
//! those folders are watched; as long as the kernel is quiet, what was found in them still holds, and one question to it
//! takes the place of dozens of looks. Whatever it reports only means that everything is looked at again.
//!
//! The kernel tells of a file by the folder it lies in. What is written through a link, or through a mapping of memory,
//! it does not tell: so there is no lull where a symlink lies in those folders, and whoever must not miss a change of
//! content (rules, files of tools) looks at the files themselves.

use rustix::fs::inotify::WatchFlags;
use rustix::fs::{Dir, FileType, Mode, OFlags};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::notice;
use crate::spaces::Spaces;

/// What calls are planned from and clients are shown, below `.ai`.
const FOLDERS: [&str; 8] =
    ["config", "directives", "knowledge", "lockfiles", "mcp", "packages", "scripts", "tools"];
/// A process that asks less often than this is gone before watching pays.
const ASKED: u32 = 32;
/// More folders are not watched: each takes a kilobyte of the kernel, and others want to watch too.
const MOST_FOLDERS: usize = 4096;

/// As long as two of them are equal, nothing has changed in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quiet(u64);

/// Whether, and how, the folders are watched.
#[derive(Debug, Default)]
pub(crate) struct Lull(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// How many lulls there were.
    count: u64,
    watch: Watch,
}

#[derive(Debug)]
enum Watch {
    /// Not yet; so often was it asked for since something last changed.
    Asked(u32),
    Watched(OwnedFd),
    /// Too many folders, a symlink among them, or no such thing here.
    Impossible,
}

impl Default for Watch {
    fn default() -> Self {
        Self::Asked(0)
    }
}

impl Spaces {
    /// The lull there is now, if the kernel can tell of one. To be asked for before looking: what is found then holds for
    /// as long as the answer stays the same.
    pub fn lull(&self) -> Option<Quiet> {
        let mut state = self.lull.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.watch = match std::mem::take(&mut state.watch) {
            Watch::Watched(events) if notice::is_silent(&events) => Watch::Watched(events),
            // What was told once is not told again.
            Watch::Watched(_) => Watch::Asked(0),
            Watch::Asked(count) if count < ASKED => Watch::Asked(count + 1),
            // A space that is still to be made cannot be watched yet.
            Watch::Asked(_) if self.homes().any(|home| !home.ai.is_dir()) => Watch::Asked(0),
            Watch::Asked(_) => {
                state.count += 1;
                self.begin().map_or(Watch::Impossible, Watch::Watched)
            }
            Watch::Impossible => Watch::Impossible,
        };
        matches!(state.watch, Watch::Watched(_)).then_some(Quiet(state.count))
    }

    /// The same for whoever asks seldom, and stays: it does not have to ask often to be worth a watch.
    pub fn lull_of_who_stays(&self) -> Option<Quiet> {
        self.lull().or_else(|| {
            if let Watch::Asked(count) = &mut self.lull.0.lock().unwrap_or_else(PoisonError::into_inner).watch
            {
                *count = ASKED;
            }
            self.lull()
        })
    }

    fn begin(&self) -> Option<OwnedFd> {
        let events = notice::queue()?;
        let mut left = MOST_FOLDERS;
        for ai in self.homes().map(|home| home.ai.as_path()) {
            if !notice::tells_of_all(ai) {
                return None;
            }
            // Moved with a folder around it, a space is another one.
            for around in ai.ancestors().skip(1) {
                notice::ask_where(&events, around).ok()?;
            }
            // What is not there yet is made in it.
            notice::ask(&events, ai, WatchFlags::empty()).ok()??;
            for folder in FOLDERS {
                watch(&events, ai.join(folder), &mut left)?;
            }
        }
        Some(events)
    }
}

/// Watches a folder and all below it; `None` where not all of it can be.
fn watch(events: &OwnedFd, folder: PathBuf, left: &mut usize) -> Option<()> {
    let mut pending = vec![folder];
    while let Some(folder) = pending.pop() {
        *left = left.checked_sub(1)?;
        // First, so that what is made in it while it is looked through is told.
        let watched = notice::ask(events, &folder, WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE).ok()?;
        if watched.is_none() {
            // Nothing there is as good as a folder; anything else may lead elsewhere.
            if folder.symlink_metadata().is_ok() {
                return None;
            }
            continue;
        }
        pending.extend(folders_in(&folder)?);
    }
    Some(())
}

/// The folders in a folder; `None` where something in it is a symlink, or cannot be told from one.
fn folders_in(folder: &Path) -> Option<Vec<PathBuf>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut folders = Vec::new();
    for entry in Dir::new(rustix::fs::open(folder, flags, Mode::empty()).ok()?).ok()? {
        let entry = entry.ok()?;
        let name = entry.file_name().to_bytes();
        match entry.file_type() {
            FileType::Directory if name != b"." && name != b".." => {
                folders.push(folder.join(OsStr::from_bytes(name)));
            }
            FileType::Directory | FileType::RegularFile => {}
            _ => return None,
        }
    }
    Some(folders)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spaces::Locations;

    struct Ground {
        base: tempfile::TempDir,
        spaces: Spaces,
    }

    impl Ground {
        fn new() -> Self {
            let base = tempfile::tempdir().unwrap();
            for folder in ["around/project/.ai/tools/data", "around/project/.ai/config", "home/.ai/mcp"] {
                std::fs::create_dir_all(base.path().join(folder)).unwrap();
            }
            std::fs::write(base.path().join("around/project/.ai/tools/data/a.sh"), "a").unwrap();
            let cwd = base.path().join("around/project");
            let spaces =
                Spaces::open(Locations { project: None, cwd, user: Some(base.path().join("home")) }).unwrap();
            Self { base, spaces }
        }

        fn path(&self, relative: &str) -> PathBuf {
            self.base.path().join(relative)
        }

        /// As a process that stays asks.
        fn settled(&self) -> Option<Quiet> {
            (0..=ASKED + 1).filter_map(|_| self.spaces.lull()).last()
        }
    }

    #[test]
    fn who_asks_seldom_watches_nothing() {
        let ground = Ground::new();
        assert!((0..ASKED).all(|_| ground.spaces.lull().is_none()));
        assert!(ground.spaces.lull().is_some());
    }

    #[test]
    fn whatever_calls_are_planned_from_ends_the_lull_and_nothing_else_does() {
        let ground = Ground::new();
        let write = |file: &str| std::fs::write(ground.path(file), "b").unwrap();
        let make = |folder: &str| std::fs::create_dir_all(ground.path(folder)).unwrap();
        let project = |file: &str| format!("around/project/.ai/{file}");
        let mut last = ground.settled().unwrap();
        let mut check = |what: &str, ends: bool, change: &dyn Fn()| {
            assert_eq!(ground.spaces.lull(), Some(last), "before {what}");
            change();
            assert_eq!(ground.spaces.lull().is_none(), ends, "{what}");
            let next = ground.settled().unwrap();
            assert_eq!(next != last, ends, "{what}");
            last = next;
        };
        check("reading", false, &|| drop(std::fs::read(ground.path(&project("tools/data/a.sh"))).unwrap()));
        check("a new state folder", true, &|| make(&project("logs/audit")));
        check("what is written in it", false, &|| write(&project("logs/audit/x.jsonl")));
        check("the user's state", true, &|| make("home/.ai/limits"));
        check("what is written there", false, &|| write("home/.ai/limits/x.json"));
        check("work in the project", false, &|| write("around/project/main.rs"));
        check("a tool edited in place", true, &|| write(&project("tools/data/a.sh")));
        check("a new tool", true, &|| write(&project("tools/data/c.sh")));
        check("a folder of tools", true, &|| make(&project("tools/more/and/more")));
        check("a tool in it", true, &|| write(&project("tools/more/and/more/d.sh")));
        check("a tool renamed", true, &|| {
            std::fs::rename(ground.path(&project("tools/data/c.sh")), ground.path(&project("tools/e.sh")))
                .unwrap();
        });
        check("a tool removed", true, &|| std::fs::remove_file(ground.path(&project("tools/e.sh"))).unwrap());
        check("the first lockfile's folder", true, &|| make(&project("lockfiles")));
        check("a lockfile", true, &|| write(&project("lockfiles/a@1.0.0.lock.json")));
        check("the first package", true, &|| make("home/.ai/packages/x/1.0.0"));
        check("a file of it", true, &|| write("home/.ai/packages/x/1.0.0/tool.yaml"));
        check("the first script's folder", true, &|| make("home/.ai/scripts"));
        check("a script", true, &|| write("home/.ai/scripts/s.sh"));
        check("configuration", true, &|| write(&project("config/mcp_registry.yaml")));
        check("a page of the book", true, &|| write("home/.ai/mcp/up.json"));
        check("other rights", true, &|| {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(ground.path("home/.ai/mcp/up.json"), mode).unwrap();
        });
    }

    #[test]
    fn a_space_that_goes_elsewhere_ends_the_lull() {
        let ground = Ground::new();
        assert!(ground.settled().is_some());
        std::fs::rename(ground.path("around"), ground.path("elsewhere")).unwrap();
        assert_eq!(ground.spaces.lull(), None);
        // Where it was there is nothing to watch, until there is.
        assert_eq!(ground.settled(), None);
        std::fs::rename(ground.path("elsewhere"), ground.path("around")).unwrap();
        assert!(ground.settled().is_some());
    }

    #[test]
    fn what_a_link_leads_to_cannot_be_told() {
        for link in
            ["around/project/.ai/tools/data/b.sh", "around/project/.ai/lockfiles", "home/.ai/packages"]
        {
            let ground = Ground::new();
            std::os::unix::fs::symlink(ground.path("home"), ground.path(link)).unwrap();
            assert_eq!(ground.settled(), None, "{link}");
        }
    }
}
