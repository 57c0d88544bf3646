//! Who descends from whom, read from `/proc`.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::kernel::files;

/// One process as the kernel shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proc {
    /// Its number.
    pub pid: Pid,
    /// Whose child it is.
    pub parent: i32,
    /// Its process group.
    pub group: i32,
    /// Its session.
    pub session: i32,
    /// Clock ticks after boot: together with the number it is one process for ever.
    pub started: u64,
}

impl Proc {
    /// The process of this number now, zombies included.
    pub fn read(pid: Pid) -> Option<Self> {
        let stat = files::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        // The name in parentheses may hold anything, parentheses included; what follows the last one is numbers.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(1);
        let mut number = || fields.next()?.parse().ok();
        let (parent, group, session) = (number()?, number()?, number()?);
        let started = fields.nth(15)?.parse().ok()?;
        Some(Self { pid, parent, group, session, started })
    }

    /// Signals exactly this process, or nobody if it is gone.
    pub fn signal(&self, signal: Signal) {
        let Ok(handle) = pidfd_open(self.pid, PidfdFlags::empty()) else { return };
        // Between reading and opening, the number may have passed to another process; after opening it cannot.
        if Self::read(self.pid).is_some_and(|now| now.started == self.started) {
            let _ = pidfd_send_signal(&handle, signal);
        }
    }
}

/// Every process that can be seen.
pub fn all() -> Vec<Proc> {
    let numbers = files::names_in("/proc").into_iter();
    numbers
        .filter_map(|name| name.to_str().ok()?.parse().ok().and_then(Pid::from_raw))
        .filter_map(Proc::read)
        .collect()
}

/// Those of `procs` that are below one of `roots`, the roots themselves not included.
pub fn below(roots: &[Pid], procs: &[Proc]) -> Vec<Proc> {
    let mut children: BTreeMap<i32, Vec<&Proc>> = BTreeMap::new();
    for process in procs {
        children.entry(process.parent).or_default().push(process);
    }
    let mut seen: BTreeSet<i32> = roots.iter().map(|pid| pid.as_raw_nonzero().get()).collect();
    let mut open: Vec<i32> = seen.iter().copied().collect();
    let mut found = Vec::new();
    while let Some(parent) = open.pop() {
        for child in children.get(&parent).into_iter().flatten() {
            let pid = child.pid.as_raw_nonzero().get();
            if seen.insert(pid) {
                open.push(pid);
                found.push(**child);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proc(pid: i32, parent: i32) -> Proc {
        Proc { pid: Pid::from_raw(pid).unwrap(), parent, group: 0, session: 0, started: 0 }
    }

    #[test]
    fn below_finds_the_whole_tree_and_nothing_else() {
        let procs = [proc(2, 1), proc(3, 2), proc(4, 3), proc(5, 1), proc(6, 9)];
        let found: BTreeSet<i32> = below(&[Pid::from_raw(2).unwrap()], &procs)
            .iter()
            .map(|p| p.pid.as_raw_nonzero().get())
            .collect();
        assert_eq!(found, [3, 4].into());
    }

    #[test]
    fn this_process_can_be_read() {
        let me = rustix::process::getpid();
        let read = Proc::read(me).unwrap();
        assert_eq!(Pid::from_raw(read.parent), rustix::process::getppid());
        assert_eq!(Pid::from_raw(read.group), Some(rustix::process::getpgrp()));
        assert!(all().contains(&read));
    }
}
