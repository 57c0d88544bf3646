//! Making processes.
#![expect(unsafe_code, reason = "what a copy of a process may do is not the compiler's to know")]

use alloc::boxed::Box;
use alloc::ffi::CString;
use alloc::vec::Vec;
use core::ffi::c_char;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use rustix::event::Timespec;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::{Errno, Result};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, pidfd_open, waitid, waitpid,
};
use rustix::thread::{CapabilitySet, CapabilitySets, futex};

use super::clock::pause;
use super::descriptors::close_all_but;
use super::namespaces::Namespaces;
use super::numbers;
use super::processors::{Kept, part_with};
use super::raw::{self, call, number};
use super::signals;

/// How much room a process needs that only has to start a program.
const STACK: usize = 16 << 10;

/// A program that is to be started.
#[derive(Debug, Clone)]
pub struct Program<'a> {
    /// Where it lies; nothing is looked for.
    pub path: CString,
    /// What it is told, its own name first.
    pub arguments: Vec<CString>,
    /// Its whole environment, each as `NAME=value`.
    pub environment: Vec<CString>,
    /// Who it is.
    pub part: Part<'a>,
}

/// Who a program is to the process that starts it.
#[derive(Debug, Clone, Copy)]
pub enum Part<'a> {
    /// A launcher of Kiwi's. It lets no signal in before it has begun, and then itself.
    Launcher {
        /// Its three streams.
        streams: [BorrowedFd<'a>; 3],
        /// New namespaces, in which it may do everything; it is the first process there.
        first_in: Option<Namespaces>,
    },
    /// What a launcher starts, in a process group of its own: a tool that signals its group does not hit its launcher.
    Tool {
        /// What it reads; its other streams are those of its launcher.
        stdin: BorrowedFd<'a>,
        /// It is the first process of a namespace with few numbers.
        among_few: bool,
    },
}

/// What the new process needs to know, and tells.
struct Told<'a> {
    program: &'a Program<'a>,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    /// The process that makes it, kept where it is.
    kept: Option<Kept>,
    /// Why the program could not be started.
    refused: Option<Errno>,
}

impl Program<'_> {
    /// Starts it.
    pub fn start(&self) -> Result<Pid> {
        let (arguments, environment) = (ended(&self.arguments), ended(&self.environment));
        // A launcher begins elsewhere: who starts it goes on working.
        let (kept, first_in) = match self.part {
            Part::Launcher { first_in, .. } => (None, first_in),
            Part::Tool { among_few, .. } => (Kept::here(), among_few.then_some(Namespaces::PROCESSES)),
        };
        let flags = raw::WAITED_FOR | first_in.map_or(0, Namespaces::flags);
        let mut told = Told { program: self, arguments, environment, kept, refused: None };
        let (_stack, end) = stack();
        // What this process does at a signal is not to be done by the new one, which has its memory.
        let let_in = signals::hold_back(u64::MAX);
        // SAFETY: the stack is this call's own, and `told` is what `begin` takes; both stay until the new process no longer shares this one's memory, because this one waits until then.
        let number = unsafe { raw::beside(flags, begin, (&raw mut told).expose_provenance(), end) };
        signals::hold_back(let_in);
        if let (Err(_), Some(kept)) = (number, told.kept) {
            kept.end();
        }
        let child = pid(number?)?;
        match told.refused {
            None => Ok(child),
            Some(errno) => {
                while let Err(Errno::INTR) = waitpid(Some(child), WaitOptions::empty()) {}
                Err(errno)
            }
        }
    }
}

/// A stack for a process that begins with nothing, and its upper end.
fn stack() -> (Vec<u128>, usize) {
    let mut stack: Vec<u128> = Vec::with_capacity(STACK / size_of::<u128>());
    let end = stack.spare_capacity_mut().as_mut_ptr_range().end.expose_provenance() & !0xf;
    (stack, end)
}

fn ended(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([core::ptr::null()]).collect()
}

/// The life of a process that is to start a program. Memory is its parent's, who waits: nothing is asked of the allocator.
extern "C" fn begin(told: usize) -> ! {
    // SAFETY: whoever made this process handed this over, holds it in place, and does not look at it until this process has begun its program or ended.
    let told = unsafe { &mut *core::ptr::with_exposed_provenance_mut::<Told<'_>>(told) };
    told.refused = become_it(told).err();
    exit(127)
}

fn become_it(told: &Told<'_>) -> Result<()> {
    if let Some(kept) = told.kept {
        kept.stay_instead();
    }
    match told.program.part {
        Part::Launcher { streams: [stdin, stdout, stderr], first_in } => {
            rustix::stdio::dup2_stdin(stdin)?;
            rustix::stdio::dup2_stdout(stdout)?;
            rustix::stdio::dup2_stderr(stderr)?;
            signals::end_by_pipes();
            if first_in.is_some() {
                keep_privileges()?;
            }
        }
        Part::Tool { stdin, among_few } => {
            if among_few {
                numbers::keep_few()?;
            }
            rustix::process::setpgid(None, None)?;
            rustix::stdio::dup2_stdin(stdin)?;
            signals::as_anew();
        }
    }
    let words = [
        told.program.path.as_ptr().expose_provenance(),
        told.arguments.as_ptr().expose_provenance(),
        told.environment.as_ptr().expose_provenance(),
        0,
        0,
        0,
    ];
    // SAFETY: a path and two lists of texts, each ended as the kernel expects.
    unsafe { call(number::EXECVE, words) }.map(drop)
}

/// Has the program that this process begins keep what may be done in new namespaces, which otherwise only their root does.
fn keep_privileges() -> Result<()> {
    let all = rustix::thread::capabilities(None)?.permitted;
    rustix::thread::set_capabilities(
        None,
        CapabilitySets { effective: all, permitted: all, inheritable: all },
    )?;
    (0..u64::BITS)
        .map(|bit| CapabilitySet::from_bits_retain(1 << bit))
        .filter(|one| all.contains(*one))
        .try_for_each(|one| rustix::thread::configure_capability_in_ambient_set(one, true))
}

/// A process beside this one, with its memory and its descriptors, that does one thing for it and then waits to be ended.
pub(crate) struct Helper {
    pid: Pid,
    task: Box<Task>,
    _stack: Vec<u128>,
}

struct Task {
    work: fn() -> Result<()>,
    /// What came of it: nothing yet, that it is done, or what the system said.
    outcome: AtomicU32,
}

const NOTHING_YET: u32 = 0;
const DONE: u32 = u32::MAX;

impl Helper {
    /// Makes one, on another processor if there is one. Its work asks nothing of the allocator, which may be busy.
    pub fn begin(work: fn() -> Result<()>) -> Result<Self> {
        let task = Box::new(Task { work, outcome: AtomicU32::new(NOTHING_YET) });
        let (stack, end) = stack();
        let given = (&raw const *task).expose_provenance();
        // SAFETY: the stack is the new process's own, and the task is what `help` takes; both stay until it has been waited for.
        let pid = pid(unsafe { raw::beside(raw::SAME_DESCRIPTORS, help, given, end) }?)?;
        part_with(pid);
        Ok(Self { pid, task, _stack: stack })
    }

    /// Waits until its work is done.
    pub fn wait(&self) -> Result<()> {
        const PATIENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
        loop {
            match self.task.outcome.load(Ordering::Acquire) {
                NOTHING_YET => {}
                DONE => return Ok(()),
                refused => return Err(Errno::from_raw_os_error(refused.cast_signed())),
            }
            let waited = futex::wait(&self.task.outcome, futex::Flags::PRIVATE, NOTHING_YET, Some(&PATIENCE));
            if waited == Err(Errno::TIMEDOUT) && self.has_ended() {
                // Somebody has ended it, and nobody said so.
                return Err(Errno::SRCH);
            }
        }
    }

    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(self.pid), options).is_ok_and(|state| state.is_some())
    }

    /// By which others can refer to it.
    pub fn handle(&self) -> Result<OwnedFd> {
        pidfd_open(self.pid, PidfdFlags::empty())
    }

    /// It is of no use any more.
    pub fn end(&self) {
        let _ = kill_process(self.pid, Signal::KILL);
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.end();
        while let Err(Errno::INTR) = waitpid(Some(self.pid), WaitOptions::empty()) {}
    }
}

/// The life of a helper.
extern "C" fn help(task: usize) -> ! {
    // SAFETY: whoever made this process handed this over, and holds it until this process is gone.
    let task = unsafe { &*core::ptr::with_exposed_provenance::<Task>(task) };
    let outcome = (task.work)().map_or_else(|errno| errno.raw_os_error().cast_unsigned(), |()| DONE);
    task.outcome.store(outcome, Ordering::Release);
    let _ = futex::wake(&task.outcome, futex::Flags::PRIVATE, 1);
    loop {
        pause(Duration::from_hours(1));
    }
}

/// Makes a copy of this process, in a group of its own, that lives as it is told and ends: a program that is loaded already
/// need not be loaded again. Of descriptors it has its streams and these, and lets go of everything else.
pub(crate) fn copy_with(kept: &[i32], life: impl FnOnce() -> Result<()>) -> Result<Pid> {
    let kept: Vec<u32> = kept.iter().copied().map(i32::cast_unsigned).collect();
    // SAFETY: a launcher has one thread, so the copy finds no lock held; it never comes back to who owns what it has a copy of.
    match unsafe { raw::copy() }? {
        0 => exit(u8::from(alone(kept).and_then(|()| life()).is_err())),
        number => pid(number),
    }
}

fn alone(kept: Vec<u32>) -> Result<()> {
    rustix::process::setpgid(None, None)?;
    // SAFETY: whoever believes to have the others is never run in this process, which ends before it returns to them.
    unsafe { close_all_but(3, kept) }
}

fn pid(number: usize) -> Result<Pid> {
    i32::try_from(number).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)
}

/// Ends this process at once.
pub fn exit(code: u8) -> ! {
    loop {
        // SAFETY: only a number is handed over.
        let _ = unsafe { call(number::EXIT_GROUP, [usize::from(code), 0, 0, 0, 0, 0]) };
    }
}
