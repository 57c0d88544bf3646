//! Starting the tool.
#![expect(clippy::disallowed_methods, reason = "the one place where tools are started")]

use rustix::io::FdFlags;
use rustix::process::Pid;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::wire::{Launch, Report, Stage};

/// The descriptors that came with a launch, by what they are for.
pub struct Given {
    stdin: Option<OwnedFd>,
    files: Vec<OwnedFd>,
    /// Where the listener for the proxy is to be sent.
    pub proxy: Option<OwnedFd>,
    /// Kept open as long as the tool runs.
    _held: Vec<OwnedFd>,
}

impl Given {
    pub fn sort(launch: &Launch, descriptors: Vec<OwnedFd>) -> Self {
        let mut descriptors = descriptors.into_iter();
        let stdin = descriptors.by_ref().take(usize::from(launch.stdin)).next();
        let files = descriptors.by_ref().take(launch.files).collect();
        let has_proxy = launch.sandbox.as_ref().is_some_and(|sandbox| sandbox.proxy);
        let proxy = descriptors.by_ref().take(usize::from(has_proxy)).next();
        Self { stdin, files, proxy, _held: descriptors.collect() }
    }

    /// Those that go inside a sandbox, in the order in which they came.
    pub fn inside(&self) -> Vec<BorrowedFd<'_>> {
        self.stdin.iter().chain(&self.files).chain(&self.proxy).map(AsFd::as_fd).collect()
    }
}

/// Starts the tool in the launcher's own surroundings, once `confine` has made them what they are to be.
pub fn start(
    launch: &Launch,
    given: &mut Given,
    confine: impl FnOnce() -> Result<(), Report>,
) -> Result<Pid, Report> {
    let paths = pass_on(&given.files).map_err(failed(Stage::Prepare))?;
    let mut command = command(launch, &paths, given.stdin.take()).map_err(failed(Stage::Prepare))?;
    std::env::set_current_dir(launch.cwd.as_path()).map_err(failed(Stage::Folder))?;
    confine()?;
    let child = spawn(&mut command).map_err(failed(Stage::Start))?;
    pid(&child).ok_or(Report::NotStarted { stage: Stage::Start, errno: 0 })
}

/// For `map_err`: what was being done when the system refused.
pub fn failed<E: Into<io::Error>>(stage: Stage) -> impl FnOnce(E) -> Report {
    move |error| Report::NotStarted { stage, errno: error.into().raw_os_error().unwrap_or(0) }
}

/// The number of a child.
pub fn pid(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
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

fn spawn(command: &mut Command) -> io::Result<Child> {
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
