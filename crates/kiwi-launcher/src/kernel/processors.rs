//! Which processor a process runs on.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Has a process that was just made begin on another processor than this one, if it may: the kernel leaves it behind its
/// parent, who goes on working, while others have nothing to do. From then on it runs wherever it could before.
pub fn part_with(process: Pid) {
    let (Ok(all), here) = (sched_getaffinity(Some(process)), sched_getcpu()) else { return };
    let mut others: CpuSet = all;
    if here < CpuSet::MAX_CPU {
        others.unset(here);
    }
    // With one processor there is no other; and whatever is refused only takes longer.
    if others.count() > 0 && sched_setaffinity(Some(process), &others).is_ok() {
        let _ = sched_setaffinity(Some(process), &all);
    }
}
