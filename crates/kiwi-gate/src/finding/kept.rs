//! Indexes of a process that lives on: a thread indexes what changes, so that a search finds it indexed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use kiwi_model::Space;
use kiwi_space::Spaces;

use super::{Finder, Progress};
use crate::kernel::Kernel;

/// How often the kernel is asked whether anything changed.
const PAUSE: Duration = Duration::from_millis(200);

/// After so many looks without anybody having wanted a tool, a process rests.
const REST: u32 = 15;

/// Keeps indexes in step until it is dropped.
pub struct Keeping {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Kernel {
    /// Keeps the indexes in step from now on.
    pub fn keep_indexes(&self) -> Keeping {
        // This process stays, and does one thing at a time.
        kiwi_exec::share_memory();
        self.finder.is_kept.store(true, Ordering::Release);
        let is_over = Arc::new(AtomicBool::new(false));
        let (finder, over) = (Arc::downgrade(&self.finder), Arc::clone(&is_over));
        let thread =
            std::thread::Builder::new().name("index".into()).spawn(move || keep(&finder, &over)).ok();
        Keeping { is_over, thread }
    }
}

fn keep(finder: &Weak<Finder>, over: &Arc<AtomicBool>) {
    let progress = Background(Arc::clone(over));
    let mut rest = Rest::default();
    while !over.load(Ordering::Acquire) {
        let Some(finder) = finder.upgrade() else { return };
        if let Ok(warnings) = finder.catch_up(None, true, &progress) {
            finder.tell_later(warnings);
        }
        rest.look(&finder.catalogue.spaces);
        drop(finder);
        std::thread::park_timeout(PAUSE);
    }
}

/// Whether anybody does anything: whoever rests gives back what it can have again.
#[derive(Default)]
struct Rest {
    wanted: u64,
    looks: u32,
    has_rested: bool,
}

impl Rest {
    fn look(&mut self, spaces: &Spaces) {
        let wanted = spaces.wanted();
        self.looks = if wanted == self.wanted { self.looks.saturating_add(1) } else { 0 };
        self.wanted = wanted;
        if self.looks != REST {
            return;
        }
        // Where the kernel does not tell of changes, clients' lists are read again and again, and these tools with them:
        // there only what the start needed is given back.
        if spaces.lull_of_who_stays().is_some() {
            spaces.forget();
        } else if self.has_rested {
            return;
        }
        self.has_rested = true;
        kiwi_exec::give_memory_back();
    }
}

/// Nobody is told; but it stops when its process does.
struct Background(Arc<AtomicBool>);

impl Progress for Background {
    fn at(&self, _: Space, _: u64, _: u64) {}

    fn is_over(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
