//! Knowing that nothing changed without looking at every folder: the kernel says when something does.
//!
//! A process that lives on asks the same question over and over, and one stat per category folder adds up. After some
//! lookups the folders are watched; as long as the kernel is quiet they are as they were. Whatever it reports, and an
//! overflow of its queue too, only means that the stamps are compared again.

use rustix::fs::inotify::WatchFlags;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use crate::notice;
use crate::root::Root;

/// A process that asks less often than this is gone before watching pays: to begin, the kernel goes through all files of
/// the folders. A search asks once for each hit.
const ASKED: u32 = 64;
/// Fewer folders are looked at as fast as the kernel is asked.
const FOLDERS: usize = 8;

/// Whether, and how, folders are watched.
#[derive(Default)]
pub(super) struct Watch(Mutex<State>);

#[derive(Default)]
enum State {
    #[default]
    New,
    Asked(u32),
    Watched {
        events: OwnedFd,
        /// Which folder `.ai` was: another one in its place brings other folders along.
        root: (u64, u64),
    },
    /// Too many folders for this machine, or no such thing here.
    Impossible,
}

impl Watch {
    /// Whether the kernel knows of no change since the folders were last compared.
    pub(super) fn is_quiet(&self, root: &Root) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let State::Watched { events, root: watched } = &*state else { return false };
        let quiet = root.identity() == Some(*watched) && notice::is_silent(events);
        if !quiet {
            // What was told once is not told again: until the folders are compared nothing is known.
            *state = State::New;
        }
        quiet
    }

    /// Takes note of a comparison that found all folders (`paths`) as they were. `true` asks for one more, because
    /// watching has only just begun.
    pub(super) fn note(&self, root: &Root, paths: &mut dyn ExactSizeIterator<Item = &str>) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = match &*state {
            State::New => State::Asked(1),
            State::Asked(count) if *count < ASKED || paths.len() < FOLDERS => {
                State::Asked(count.saturating_add(1))
            }
            State::Asked(_) => begin(root, paths).unwrap_or(State::Impossible),
            State::Watched { .. } | State::Impossible => return false,
        };
        *state = next;
        matches!(*state, State::Watched { .. })
    }
}

fn begin(root: &Root, paths: &mut dyn Iterator<Item = &str>) -> Option<State> {
    let events = notice::queue()?;
    // The root too: a folder that is not there yet is made in one that is.
    for path in std::iter::once("").chain(paths) {
        notice::ask(&events, &root.absolute(path), WatchFlags::empty()).ok()?;
    }
    Some(State::Watched { events, root: root.identity()? })
}
