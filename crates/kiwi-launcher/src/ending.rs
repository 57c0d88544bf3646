//! Ending everything a tool started.
//!
//! As subreaper the launcher inherits every orphan among its descendants, so whatever a tool detaches (new sessions,
//! double forks) is still below the launcher, and "no child left" means "nothing left".

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};

use crate::kernel::clock::{Moment, pause};
use crate::procfs::{self, Proc};
use crate::wire::Exit;

/// How the tool ended; it must have.
pub fn reap_tool(tool: Pid) -> Option<Exit> {
    let (_, status) = rustix::process::waitpid(Some(tool), WaitOptions::empty()).ok()??;
    status.exit_status().map(Exit::Code).or_else(|| status.terminating_signal().map(Exit::Signal))
}

/// Takes leave of every child that has ended; whether none is left. Costs one system call when the tool was alone.
pub fn nobody_left() -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}

/// Waits for every child; they are on their way out.
pub fn wait_for_all() {
    while matches!(rustix::process::wait(WaitOptions::empty()), Ok(_) | Err(Errno::INTR)) {}
}

/// Asks all descendants to end, and after the grace makes them.
pub fn end_everything(grace: Duration) {
    ask();
    if wait_until(Moment::now().after(grace)) {
        return;
    }
    // What is born while we look is found in the next round; a round kills its parent, so it ends.
    let mut pauses = Pauses::default();
    loop {
        kill_round();
        if nobody_left() {
            return;
        }
        pauses.sleep();
    }
}

/// SIGTERM to everybody, once each.
fn ask() {
    let mut asked = BTreeSet::new();
    // A child may change parents while the table is read and so be missed; a second look finds it. More looks would
    // hit what a tool starts in order to clean up.
    for _ in 0..2 {
        let mut found = descendants();
        found.retain(|process| !asked.contains(&process.group));
        for group in groups(&found) {
            asked.insert(group.as_raw_nonzero().get());
            let _ = rustix::process::kill_process_group(group, Signal::TERM);
            // A stopped process acts on it only when it is continued.
            let _ = rustix::process::kill_process_group(group, Signal::CONT);
        }
    }
}

fn kill_round() {
    let found = descendants();
    for group in groups(&found) {
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
    for process in found {
        process.signal(Signal::KILL);
    }
}

/// The process groups of descendants. The kernel signals a group as a whole, so that nobody in it can fork away.
///
/// Descendants live in sessions made below this launcher, hence their groups hold no stranger. Only the launcher's own
/// is left out; who joined that one is ended by number, in the last rounds.
fn groups(found: &[Proc]) -> impl Iterator<Item = Pid> {
    let own = rustix::process::getpgrp();
    let groups: BTreeSet<i32> = found.iter().map(|process| process.group).collect();
    groups.into_iter().filter_map(Pid::from_raw).filter(move |group| *group != own)
}

fn descendants() -> Vec<Proc> {
    procfs::below(&[rustix::process::getpid()], &procfs::all())
}

/// Waits for one child for so long; whether it ended in time.
pub fn has_ended(child: Pid, patience: Duration) -> bool {
    // Whoever is no child any more was waited for already.
    wait_for(Moment::now().after(patience), || {
        !matches!(rustix::process::waitpid(Some(child), WaitOptions::NOHANG), Ok(None))
    })
}

/// Waits for the last child; whether it ended in time.
fn wait_until(deadline: Option<Moment>) -> bool {
    wait_for(deadline, nobody_left)
}

fn wait_for(deadline: Option<Moment>, mut is_over: impl FnMut() -> bool) -> bool {
    let mut pauses = Pauses::default();
    loop {
        if is_over() {
            return true;
        }
        if deadline.is_some_and(Moment::is_over) {
            return false;
        }
        pauses.sleep();
    }
}

/// Short at first, because most processes end at once; never long.
pub struct Pauses(Duration);

impl Default for Pauses {
    fn default() -> Self {
        Self(Duration::from_micros(200))
    }
}

impl Pauses {
    /// Until it may be worth looking again.
    pub fn sleep(&mut self) {
        pause(self.0);
        self.0 = (self.0 * 3 / 2).min(Duration::from_millis(20));
    }
}
