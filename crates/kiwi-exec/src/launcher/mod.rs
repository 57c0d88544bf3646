//! The launcher, as Kiwi has it: the program it carries along, and `kiwi __launch` itself.
//!
//! Both are [`kiwi_launcher`]. The one that is carried starts in a tenth of the time; Kiwi itself speaks to container
//! engines too, and is there where the system does not let programs run from memory.

mod carried;
mod container;

use kiwi_launcher::kernel::processes::{Part, Program};
use std::ffi::CString;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::orphans::Child;
use crate::process::Launcher;

/// The whole life of a launcher. The binary calls this first thing when its first argument is [`Launcher::ARGUMENT`].
pub fn launcher_main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(2).collect();
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    let done = kiwi_launcher::main(&words, &container::OfKiwi);
    if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// By which program launchers are started.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Door {
    /// Kiwi itself, which can always do it.
    pub kiwi: PathBuf,
    /// Another one, to be taken instead of both.
    pub instead: Option<PathBuf>,
}

impl Door {
    /// The same without the program that Kiwi carries along, which speaks to no container engine.
    pub fn of_kiwi(&self) -> Self {
        let instead = self.instead.as_ref().unwrap_or(&self.kiwi);
        Self { kiwi: self.kiwi.clone(), instead: Some(instead.clone()) }
    }

    /// Starts a launcher with these streams.
    pub fn open(&self, role: Option<&str>, streams: [BorrowedFd<'_>; 3]) -> io::Result<Child> {
        // Whoever lists processes sees Kiwi in both cases.
        let name = self.instead.as_ref().unwrap_or(&self.kiwi).as_os_str().as_bytes();
        let words = [name, Launcher::ARGUMENT.as_bytes()].into_iter().chain(role.map(str::as_bytes));
        let arguments = words.map(CString::new).collect::<Result<Vec<_>, _>>()?;
        let start = |program: &Path| {
            let path = CString::new(program.as_os_str().as_bytes())?;
            let part = Part::Launcher(streams);
            Child::start(&Program { path, arguments: arguments.clone(), environment: Vec::new(), part })
        };
        match (&self.instead, carried::path()) {
            (Some(instead), _) => start(instead),
            // Where it cannot be started, Kiwi can.
            (None, Some(carried)) => start(carried).or_else(|_| start(&self.kiwi)),
            (None, None) => start(&self.kiwi),
        }
    }
}
