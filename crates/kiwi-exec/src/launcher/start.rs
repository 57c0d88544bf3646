//! Starting the tool.
#![expect(clippy::disallowed_methods, reason = "the one place where tools are started")]

use rustix::io::FdFlags;
use rustix::process::{Pid, Resource, Rlimit};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::wire::{Launch, Report, Stage};

/// Enough for any tool; a limit of a billion, as some containers give, makes programs that close every possible
/// descriptor crawl.
const MOST_OPEN_FILES: u64 = 65_536;

/// A running tool, and what is kept open as long as it runs.
pub struct Started {
    pub tool: Pid,
    _held: Vec<OwnedFd>,
}

pub fn start(launch: &Launch, descriptors: Vec<OwnedFd>) -> Result<Started, Report> {
    let failed = |stage| move |error: io::Error| not_started(stage, &error);
    let mut descriptors = descriptors.into_iter();
    let stdin = descriptors.by_ref().take(usize::from(launch.stdin)).next();
    let files: Vec<OwnedFd> = descriptors.by_ref().take(launch.files).collect();
    let held: Vec<OwnedFd> = descriptors.collect();

    let paths = pass_on(&files).map_err(failed(Stage::Prepare))?;
    let mut command = command(launch, &paths, stdin).map_err(failed(Stage::Prepare))?;
    if launch.confined {
        confine().map_err(failed(Stage::Prepare))?;
    }
    std::env::set_current_dir(launch.cwd.as_path()).map_err(failed(Stage::Folder))?;
    let child = spawn(&mut command).map_err(failed(Stage::Start))?;
    i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .map(|tool| Started { tool, _held: held })
        .ok_or(Report::NotStarted { stage: Stage::Start, errno: 0 })
}

fn not_started(stage: Stage, error: &io::Error) -> Report {
    Report::NotStarted { stage, errno: error.raw_os_error().unwrap_or(0) }
}

/// Lets the tool inherit these, and says where it will find them.
fn pass_on(files: &[OwnedFd]) -> io::Result<Vec<PathBuf>> {
    files
        .iter()
        .map(|file| {
            rustix::io::fcntl_setfd(file, FdFlags::empty())?;
            Ok(PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())))
        })
        .collect()
}

fn command(launch: &Launch, paths: &[PathBuf], stdin: Option<OwnedFd>) -> io::Result<Command> {
    let mut command = Command::new(launch.program.spell(paths)?);
    for argument in &launch.args {
        command.arg(argument.spell(paths)?);
    }
    command.env_clear();
    for (name, value) in &launch.env {
        command.env(name, value.spell(paths)?);
    }
    command.stdin(stdin.map_or_else(Stdio::null, Stdio::from));
    // A group of its own, so that a tool that signals its group does not hit its launcher.
    command.process_group(0);
    Ok(command)
}

fn spawn(command: &mut Command) -> io::Result<std::process::Child> {
    // A process that Kiwi is just starting elsewhere may for a moment hold a copy of the descriptor through which the
    // program was written.
    for pause in [1, 2, 4, 8, 16, 32, 64, 128] {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(pause));
            }
            other => return other,
        }
    }
    command.spawn()
}

/// What `standard` promises. The launcher takes it upon itself; the tool inherits it.
fn confine() -> io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    // Only ever lowered: raising may need a capability.
    let files = rustix::process::getrlimit(Resource::Nofile);
    if files.current.is_none_or(|current| current > MOST_OPEN_FILES) {
        let lowered = Rlimit { current: Some(MOST_OPEN_FILES), maximum: files.maximum };
        rustix::process::setrlimit(Resource::Nofile, lowered)?;
    }
    // Memory images of tools may hold secrets.
    rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    Ok(())
}
