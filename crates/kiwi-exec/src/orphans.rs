//! What to do when a launcher is lost: the tool killed it, or the out-of-memory killer did.
//!
//! Kiwi makes itself a subreaper, so the processes of a lost launcher become Kiwi's children. No other room of Kiwi
//! starts processes, so a child that is not one of our launchers and is younger than the lost one belonged to it.

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, WaitOptions};
use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, MutexGuard, Once, PoisonError, RwLock};
use std::time::{Duration, Instant};

use kiwi_launcher::kernel::processes::Program;
use kiwi_launcher::kernel::processors::part_with;
use kiwi_launcher::procfs::{self, Proc};

/// The variable that says to which call a process belongs.
pub const MARKER: &str = "KIWI_CALL";

/// How long a sweep goes on before it gives up on processes that do not die.
const PATIENCE: Duration = Duration::from_secs(2);

/// Launchers that were started and not yet waited for.
static LAUNCHERS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());
/// Held for reading while a launcher is born and entered above, for writing while strangers are looked for.
static BIRTHS: RwLock<()> = RwLock::new(());

/// A launcher that was started and not yet waited for.
#[derive(Debug)]
pub struct Child(Pid);

impl Child {
    /// Starts it.
    pub fn start(program: &Program<'_>) -> io::Result<Self> {
        static SUBREAPER: Once = Once::new();
        // Without it only the rare lost launcher is answered less well; that is no reason to refuse every call.
        SUBREAPER.call_once(|| {
            let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        });
        let _birth = BIRTHS.read().unwrap_or_else(PoisonError::into_inner);
        let pid = program.start()?;
        launchers().insert(pid.as_raw_nonzero().get());
        part_with(pid);
        Ok(Self(pid))
    }

    /// Waits for one that has said its last.
    pub fn reap(self) {
        let Self(pid) = self;
        while let Err(Errno::INTR) = rustix::process::waitpid(Some(pid), WaitOptions::empty()) {}
        launchers().remove(&pid.as_raw_nonzero().get());
    }

    /// Waits for one that ends by itself, for so long; what it leaves behind is ended. Whatever happened to it, it is
    /// looked at before it is waited for: once it is gone, nobody can tell which processes were its own.
    pub fn see_off(self, call: &str, patience: Duration) {
        let Self(pid) = self;
        let state = if has_ended_within(pid, patience) { state(pid) } else { None };
        if state.is_some_and(|state| state.exit_status() == Some(0)) {
            self.reap();
        } else {
            self.end_lost(call);
        }
    }

    /// Kills one that is of no use any more, ends what it leaves behind, and waits for it.
    pub fn end_lost(self, call: &str) {
        let Self(pid) = self;
        let _ = rustix::process::kill_process(pid, Signal::KILL);
        // Only when it is a zombie have its children become ours.
        let _ = state(pid);
        if let Some(launcher) = Proc::read(pid) {
            sweep(&launcher, call);
        }
        self.reap();
    }
}

/// How a process ended, once it has; it stays a zombie.
fn state(pid: Pid) -> Option<WaitIdStatus> {
    rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).ok()?
}

fn has_ended_within(pid: Pid, patience: Duration) -> bool {
    let Ok(handle) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { return false };
    let mut fds = [PollFd::new(&handle, PollFlags::IN)];
    rustix::event::poll(&mut fds, Timespec::try_from(patience).ok().as_ref()).is_ok_and(|ready| ready > 0)
}

fn sweep(launcher: &Proc, call: &str) {
    let deadline = Instant::now() + PATIENCE;
    // A process may change parents while the table is read and so be missed; only two empty looks are proof.
    let mut empty_looks = 0;
    while empty_looks < 2 && Instant::now() < deadline {
        let births = BIRTHS.write().unwrap_or_else(PoisonError::into_inner);
        let procs = procfs::all();
        let orphans = orphans_of(launcher, call, &procs);
        let roots: Vec<Pid> = orphans.iter().map(|orphan| orphan.pid).collect();
        for process in orphans.iter().chain(&procfs::below(&roots, &procs)) {
            process.signal(Signal::KILL);
        }
        drop(births);
        empty_looks = if orphans.is_empty() { empty_looks + 1 } else { 0 };
        for orphan in roots {
            let _ =
                rustix::process::waitid(WaitId::Pid(orphan), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn orphans_of(launcher: &Proc, call: &str, procs: &[Proc]) -> Vec<Proc> {
    let kiwi = rustix::process::getpid().as_raw_nonzero().get();
    let known = launchers();
    procs
        .iter()
        .filter(|process| process.parent == kiwi && process.started >= launcher.started)
        .filter(|process| !known.contains(&process.pid.as_raw_nonzero().get()))
        // As the first process of a container Kiwi also inherits orphans that were never its own.
        .filter(|process| {
            kiwi != 1 || process.session == launcher.pid.as_raw_nonzero().get() || is_marked(process, call)
        })
        .copied()
        .collect()
}

fn is_marked(process: &Proc, call: &str) -> bool {
    let marker = format!("{MARKER}={call}");
    std::fs::read(format!("/proc/{}/environ", process.pid.as_raw_nonzero()))
        .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|entry| entry == marker.as_bytes()))
}

fn launchers() -> MutexGuard<'static, BTreeSet<i32>> {
    LAUNCHERS.lock().unwrap_or_else(PoisonError::into_inner)
}
