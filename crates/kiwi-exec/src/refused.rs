//! Why a tool was never started, in words for whoever asked for it.

use kiwi_model::Isolation;
use std::io;
use std::path::PathBuf;

use crate::container::{ContainerError, telling};
use crate::error::ExecError;
use crate::order::Order;
use crate::sandbox::Builder;
use kiwi_launcher::wire::{Launch, Limit, Stage, Wall};

/// What the launcher was doing, what the system answered, and what whoever builds the walls said about it.
pub struct Refused<'a> {
    pub stage: Stage,
    pub error: io::Error,
    pub said: &'a [u8],
}

impl Refused<'_> {
    pub fn explain(self, launch: &Launch, level: Isolation, cwd: PathBuf) -> ExecError {
        let Self { stage, error, said } = self;
        let program = launch
            .program
            .spell()
            .map_or_else(|_| "the tool's own file".into(), |program| program.to_string_lossy().into_owned());
        match stage {
            Stage::Prepare => {
                ExecError::Io { doing: format!("prepare a process for `{program}`"), source: error }
            }
            Stage::Folder => ExecError::WorkingFolder { path: cwd, source: error },
            Stage::Start => not_executable(program, error, launch),
            Stage::Limit(limit) => ExecError::LimitUnavailable {
                limit: match limit {
                    Limit::Cpu => "cpu",
                    Limit::Memory => "memory",
                    Limit::Pids => "pids",
                    Limit::Files => "files",
                },
                why: match limit {
                    Limit::Memory | Limit::Pids => "Kiwi cannot make a control group for the call".into(),
                    Limit::Cpu | Limit::Files => error.to_string(),
                },
            },
            Stage::Wall(wall) => {
                let why = missing(wall, &error, said, launch);
                match launch.sandbox.as_ref().map(|sandbox| &sandbox.builder) {
                    Some(Builder::Container(engine)) => {
                        ContainerError::NoWalls { engine: engine.kind.as_str(), level, why }.into()
                    }
                    _ => ExecError::SandboxUnavailable { level, why },
                }
            }
        }
    }
}

fn not_executable(program: String, error: io::Error, launch: &Launch) -> ExecError {
    let why = match error.kind() {
        io::ErrorKind::ArgumentListTooLong => {
            return ExecError::ArgumentsTooLong { bytes: Order::length(launch) };
        }
        // The program itself was there a moment ago.
        io::ErrorKind::NotFound if launch.sandbox.is_some() => {
            "it, or the interpreter it names, is not visible inside the sandbox"
        }
        io::ErrorKind::NotFound => "the interpreter it names does not exist",
        io::ErrorKind::PermissionDenied => "it may not be executed",
        _ if error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => {
            "it is neither a program nor a script with a `#!` line"
        }
        _ => return ExecError::Io { doing: format!("start `{program}`"), source: error },
    };
    ExecError::NotExecutable { program, why: why.into() }
}

fn last_line(said: &[u8]) -> Option<String> {
    telling(&String::from_utf8_lossy(said)).map(ToOwned::to_owned)
}

fn missing(wall: Wall, error: &io::Error, said: &[u8], launch: &Launch) -> String {
    let shown = |number: usize| {
        let shown = launch.sandbox.as_ref().and_then(|sandbox| sandbox.view.get(number));
        shown.map(|shown| shown.at().display().to_string()).unwrap_or_default()
    };
    match wall {
        Wall::Bubblewrap => last_line(said).unwrap_or_else(|| format!("`bwrap` cannot be started: {error}")),
        Wall::Container => {
            last_line(said).unwrap_or_else(|| format!("its container cannot be started: {error}"))
        }
        Wall::Namespaces => format!("namespaces cannot be made: {error}"),
        Wall::Root => format!("its root file system cannot be built: {error}"),
        Wall::Shown(number) => format!("`{}` cannot be shown inside: {error}", shown(number)),
        Wall::Network => format!("its network cannot be set up: {error}"),
        Wall::Privileges => format!("privileges cannot be dropped: {error}"),
        Wall::Landlock => format!("landlock is not available (Linux 5.19 or later has it): {error}"),
        Wall::Seccomp => format!("seccomp is not available: {error}"),
    }
}
