//! The launcher, as Kiwi has it: the program it carries along, and `kiwi __launch` itself.
//!
//! Both are [`kiwi_launcher`]. The one that is carried starts in a tenth of the time; Kiwi itself speaks to container
//! engines too, and is there where the system does not let programs run from memory.

mod carried;
mod container;

use kiwi_launcher::inside::{Users, early};
use kiwi_launcher::kernel::namespaces::Namespaces;
use kiwi_launcher::kernel::processes::{Part, Program};
use kiwi_launcher::spare;
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

/// What a launcher is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Somebody who waits for orders.
    Plain,
    /// Somebody who has something ready and waits for orders.
    Spare,
    /// The first process of a sandbox.
    First,
    /// One that has its walls ready and waits for orders.
    SpareFirst,
}

impl Role {
    /// By what it knows that.
    fn words(self) -> Vec<String> {
        let spare = self.is_spare().then_some(spare::ROLE).map(str::to_owned);
        let first = self.is_first().then(|| [early::ROLE.to_owned()].into_iter().chain(Users::own().words()));
        spare.into_iter().chain(first.into_iter().flatten()).collect()
    }

    const fn is_spare(self) -> bool {
        matches!(self, Self::Spare | Self::SpareFirst)
    }

    const fn is_first(self) -> bool {
        matches!(self, Self::First | Self::SpareFirst)
    }

    fn first_in(self) -> Option<Namespaces> {
        self.is_first().then_some(early::BORN_IN)
    }
}

impl Door {
    /// The same without the program that Kiwi carries along, which speaks to no container engine.
    pub fn of_kiwi(&self) -> Self {
        let instead = self.instead.as_ref().unwrap_or(&self.kiwi);
        Self { kiwi: self.kiwi.clone(), instead: Some(instead.clone()) }
    }

    /// Starts a launcher with these streams.
    pub fn open(&self, role: Role, streams: [BorrowedFd<'_>; 3]) -> io::Result<Child> {
        // Whoever lists processes sees Kiwi in both cases.
        let name = self.instead.as_ref().unwrap_or(&self.kiwi).as_os_str().as_bytes();
        let role_words = role.words();
        let words = [name, Launcher::ARGUMENT.as_bytes()].into_iter();
        let words = words.chain(role_words.iter().map(String::as_bytes));
        let arguments = words.map(CString::new).collect::<Result<Vec<_>, _>>()?;
        let start = |program: &Path| {
            let path = CString::new(program.as_os_str().as_bytes())?;
            let part = Part::Launcher { streams, first_in: role.first_in() };
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
