//! Which processor a process runs on.
#![expect(
    unsafe_code,
    reason = "no library without a C library asks which one it is without reading half the kernel's page"
)]

use core::mem::MaybeUninit;
use core::ptr::null_mut;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::raw::{call, number};

/// Has a process that was just made begin on another processor than this one, if it may: the kernel leaves it behind its
/// parent, who goes on working, while others have nothing to do. From then on it runs wherever it could before.
pub fn part_with(process: Pid) {
    if let Some(kept) = Kept::off(process) {
        kept.end();
    }
}

/// A process that for a while does not run on every processor it may run on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept {
    process: Pid,
    all: CpuSet,
    /// All but the one where this was found out.
    others: CpuSet,
}

impl Kept {
    /// Keeps this process here. Another that it makes and waits for begins soonest where it was itself, because no other
    /// processor has to be woken.
    pub fn here() -> Option<Self> {
        let (here, kept) = Self::find(rustix::thread::gettid())?;
        let mut only = CpuSet::new();
        only.set(here);
        kept.on(&only)
    }

    fn off(process: Pid) -> Option<Self> {
        let (_, kept) = Self::find(process)?;
        kept.on(&kept.others)
    }

    fn find(process: Pid) -> Option<(usize, Self)> {
        let (here, all) = (here()?, sched_getaffinity(Some(process)).ok()?);
        let mut others = all;
        others.unset(here);
        // With one processor there is no other.
        let others = if others.count() > 0 { others } else { all };
        Some((here, Self { process, all, others }))
    }

    /// Nothing where something is refused: then it only takes longer.
    fn on(self, processors: &CpuSet) -> Option<Self> {
        sched_setaffinity(Some(self.process), processors).ok().map(|()| self)
    }

    /// Lets go of it.
    pub fn end(&self) {
        let _ = sched_setaffinity(Some(self.process), &self.all);
    }

    /// For a process that was made by one that is kept and waits: this one stays, the other goes on elsewhere, and both may
    /// run where they could before. Who waits can still count as somebody who is at work here, and a process that begins a
    /// program is moved to where nobody is.
    pub fn stay_instead(&self) {
        let _ = sched_setaffinity(Some(self.process), &self.others);
        self.end();
        let _ = sched_setaffinity(None, &self.all);
    }
}

/// The processor this process is on.
fn here() -> Option<usize> {
    let mut processor = MaybeUninit::<u32>::uninit();
    let words = [processor.as_mut_ptr().expose_provenance(), null_mut::<u32>().addr(), 0, 0, 0, 0];
    // SAFETY: the kernel writes one number, for which there is room, and nothing where nothing is asked for.
    unsafe { call(number::GETCPU, words) }.ok()?;
    // SAFETY: it has written it.
    let here = unsafe { processor.assume_init() } as usize;
    (here < CpuSet::MAX_CPU).then_some(here)
}
