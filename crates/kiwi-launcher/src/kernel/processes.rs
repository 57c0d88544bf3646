//! Making processes.
#![expect(unsafe_code, reason = "what a copy of a process may do is not the compiler's to know")]

use alloc::ffi::CString;
use alloc::vec::Vec;
use core::ffi::c_char;
use rustix::fd::BorrowedFd;
use rustix::io::{Errno, Result};
use rustix::process::{Pid, WaitOptions, waitpid};

use super::descriptors::close_all_but;
use super::processors::Kept;
use super::raw::{self, call, number};
use super::signals;

/// How much room a process needs that only has to start a program.
const STACK: usize = 16 << 10;

/// A program that is to be started.
#[derive(Debug)]
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
    /// A launcher of Kiwi's, with these three streams. It lets no signal in before it has begun, and then itself.
    Launcher([BorrowedFd<'a>; 3]),
    /// What a launcher starts, in a process group of its own: a tool that signals its group does not hit its launcher.
    Tool {
        /// What it reads; its other streams are those of its launcher.
        stdin: BorrowedFd<'a>,
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
        let kept = if matches!(self.part, Part::Tool { .. }) { Kept::here() } else { None };
        let mut told = Told { program: self, arguments, environment, kept, refused: None };
        let mut stack: Vec<u128> = Vec::with_capacity(STACK / size_of::<u128>());
        let end = stack.spare_capacity_mut().as_mut_ptr_range().end.expose_provenance() & !0xf;
        // What this process does at a signal is not to be done by the new one, which has its memory.
        let let_in = signals::hold_back(u64::MAX);
        // SAFETY: the stack is this call's own, and `told` is what `begin` takes; both stay until the new process no longer shares this one's memory, because this one waits until then.
        let number = unsafe { raw::beside(begin, (&raw mut told).expose_provenance(), end) };
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
        kept.end();
        kept.end_inherited();
    }
    match told.program.part {
        Part::Launcher([stdin, stdout, stderr]) => {
            rustix::stdio::dup2_stdin(stdin)?;
            rustix::stdio::dup2_stdout(stdout)?;
            rustix::stdio::dup2_stderr(stderr)?;
            signals::end_by_pipes();
        }
        Part::Tool { stdin } => {
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
