//! The launcher, as Kiwi has it: the program it carries along, and `kiwi __launch` itself.
//!
//! Both are [`kiwi_launcher`]. The one that is carried starts in a tenth of the time; Kiwi itself speaks to container
//! engines too, and is there where the system does not let programs run from memory.
#![expect(clippy::disallowed_methods, reason = "the one place where launchers are started")]

mod carried;
mod container;

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode};

use crate::orphans;
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

    /// Starts a launcher. `dress` gives it its streams, anew for every attempt.
    pub fn open(
        &self,
        role: Option<&str>,
        dress: impl Fn(&mut Command) -> io::Result<()>,
    ) -> io::Result<Child> {
        let start = |program: &PathBuf| {
            let mut command = Command::new(program);
            // Whoever lists processes sees Kiwi in both cases.
            command.arg0(self.instead.as_ref().unwrap_or(&self.kiwi));
            command.arg(Launcher::ARGUMENT).args(role).env_clear();
            dress(&mut command)?;
            orphans::start_launcher(&mut command)
        };
        match (&self.instead, carried::path()) {
            (Some(instead), _) => start(instead),
            // Where it cannot be started, Kiwi can.
            (None, Some(carried)) => start(carried).or_else(|_| start(&self.kiwi)),
            (None, None) => start(&self.kiwi),
        }
    }
}
