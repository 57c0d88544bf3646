//! Waiting until something below the folders of items changes.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, ReadFlags, WatchFlags};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::waker::Waker;
use super::watched::{Holds, Meaning, folders};
use crate::error::SpaceError;
use crate::index::Index;
use crate::kind::MANIFEST;
use crate::notice;
use crate::packages;
use crate::root::Root;
use crate::spaces::Home;

/// Quiet this long, a change is over: whoever saves in several steps has taken them all.
const QUIET: Duration = Duration::from_millis(50);
/// Longer than this nobody waits for quiet.
const PATIENCE: Duration = Duration::from_millis(250);
/// How often the folders are compared with those that are watched, while somebody makes new ones.
const ROUNDS: usize = 4;

/// What changed while somebody waited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stirred {
    /// Nothing, or the wait was ended from outside.
    Nothing,
    /// Items of these folders ([`super::Sighting::folder`]) may have changed; all others are as they were.
    Folders(BTreeSet<String>),
    /// Anything may have changed.
    Everything,
}

/// Tells when something below the folders of items of one space changes. What a symlink leads to is not watched.
pub struct Watcher {
    ai: PathBuf,
    /// Where the space's packages are noted in the user space.
    notes: Option<PathBuf>,
    index: Arc<Index>,
    waker: Waker,
    events: OwnedFd,
    /// By the kernel's number.
    watched: HashMap<i32, Holds>,
    /// Which folder is watched; `None` when watching failed since it began.
    root: Option<(u64, u64)>,
}

/// How the kernel was left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Event,
    Woken,
    Late,
}

/// What was told so far.
#[derive(Default)]
struct Told {
    folders: BTreeSet<String>,
    /// Category and folder of tools that may be none any more.
    tools: BTreeSet<(String, String)>,
    everything: bool,
}

impl Watcher {
    pub(super) fn begin(home: &Home, user_ai: Option<&Path>) -> Result<Option<Self>, SpaceError> {
        let (Some(events), Some(waker)) = (notice::queue(), Waker::new()) else { return Ok(None) };
        let mut watcher = Self {
            ai: home.ai.clone(),
            notes: user_ai.map(|user| user.join(packages::notes(&home.owner))),
            index: Arc::clone(&home.index),
            waker,
            events,
            watched: HashMap::new(),
            root: None,
        };
        watcher.arm()?;
        Ok(watcher.root.is_some().then_some(watcher))
    }

    /// What ends a wait from outside.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Waits for a change, and then a moment longer, until it is over. When watching has become impossible this waits
    /// its time and says that anything may have changed.
    pub fn wait(&mut self, at_most: Duration) -> Stirred {
        let until = Instant::now() + at_most;
        let mut told = Told { everything: self.root.is_none(), ..Told::default() };
        let mut ended = Ended::Event;
        while ended == Ended::Event && (told.is_empty() || self.root.is_none()) {
            ended = self.next(until, &mut told);
        }
        if ended == Ended::Event {
            self.settle(&mut told);
        }
        if self.root.is_none() && ended == Ended::Woken {
            return Stirred::Nothing;
        }
        self.sum_up(told)
    }

    /// Goes on until nothing more is told.
    fn settle(&mut self, told: &mut Told) {
        let last = Instant::now() + PATIENCE;
        while self.next((Instant::now() + QUIET).min(last), told) == Ended::Event {}
    }

    fn sum_up(&mut self, told: Told) -> Stirred {
        let root = Root::open(&self.ai).ok().flatten();
        // Moved with a folder around it, it is another one without an event.
        let is_same = self.root.is_some() && root.as_ref().and_then(Root::identity) == self.root;
        let mut folders = told.folders;
        let mut everything = told.everything || !is_same;
        for (category, folder) in told.tools {
            let is_tool =
                root.as_ref().is_some_and(|root| root.stat(&format!("{folder}/{MANIFEST}")).is_some());
            everything |= !is_tool;
            folders.insert(category);
        }
        if everything {
            if self.arm().is_err() {
                self.root = None;
            }
            return Stirred::Everything;
        }
        if folders.is_empty() { Stirred::Nothing } else { Stirred::Folders(folders) }
    }

    /// Takes what the kernel tells next.
    fn next(&mut self, until: Instant, told: &mut Told) -> Ended {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).ok();
        let mut both = [
            PollFd::from_borrowed_fd(self.waker.fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.events.as_fd(), PollFlags::IN),
        ];
        let polled = poll(&mut both, timeout.as_ref());
        let [is_woken, has_events] = both.map(|fd| !fd.revents().is_empty());
        match polled {
            Err(rustix::io::Errno::INTR) => Ended::Event,
            Err(_) => {
                told.everything = true;
                Ended::Late
            }
            Ok(_) if is_woken => {
                self.waker.rest();
                Ended::Woken
            }
            Ok(_) if has_events => {
                self.read(told);
                Ended::Event
            }
            Ok(_) => Ended::Late,
        }
    }

    fn read(&self, told: &mut Told) {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.events, &mut buffer);
        while let Ok(event) = events.next() {
            let flags = event.events();
            if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                told.everything = true;
                continue;
            }
            // No longer watched: what became of it was told by the folder around it.
            let Some(holds) = self.watched.get(&event.wd()) else { continue };
            let name = event.file_name().map(std::ffi::CStr::to_string_lossy).unwrap_or_default();
            told.add(holds.meaning(flags, &name));
        }
    }

    /// Watches the folders that there are now, and no others.
    fn arm(&mut self) -> Result<(), SpaceError> {
        self.root = None;
        let Some(root) = Root::open(&self.ai)? else { return Ok(()) };
        let mut before = None;
        for _ in 0..ROUNDS {
            let Some(now) = folders(&root, &self.index, self.notes.clone())? else { return Ok(()) };
            // Nothing was made between looking and watching: what is made from now on is told.
            if before.as_ref() == Some(&now) {
                self.root = root.identity();
                return Ok(());
            }
            let Some(watched) = self.ask(&now) else { return Ok(()) };
            for number in self.watched.keys().filter(|number| !watched.contains_key(number)) {
                // The kernel has forgotten those whose folder is gone.
                let _ = inotify::remove_watch(&self.events, *number);
            }
            self.watched = watched;
            before = Some(now);
        }
        // Somebody makes folders faster than they are watched; the last ones tell of themselves.
        self.root = root.identity();
        Ok(())
    }

    fn ask(&self, folders: &BTreeMap<PathBuf, Holds>) -> Option<HashMap<i32, Holds>> {
        let mut watched = HashMap::with_capacity(folders.len());
        for (path, holds) in folders {
            let more = WatchFlags::CLOSE_WRITE | WatchFlags::MODIFY;
            if let Some(number) = notice::ask(&self.events, path, more).ok()? {
                watched.insert(number, holds.clone());
            }
        }
        Some(watched)
    }
}

impl Told {
    fn is_empty(&self) -> bool {
        !self.everything && self.folders.is_empty() && self.tools.is_empty()
    }

    fn add(&mut self, meaning: Meaning) {
        match meaning {
            Meaning::Nothing => {}
            Meaning::Folder(folder) => {
                self.folders.insert(folder);
            }
            Meaning::Tool(category, folder) => {
                self.tools.insert((category, folder));
            }
            Meaning::Everything => self.everything = true,
        }
    }
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watcher")
            .field("ai", &self.ai)
            .field("folders", &self.watched.len())
            .finish_non_exhaustive()
    }
}
