//! Starting the tool.

use alloc::ffi::CString;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, FdFlags, Result};
use rustix::process::Pid;

use crate::kernel::clock::pause;
use crate::kernel::files;
use crate::kernel::processes::{Part, Program};
use crate::wire::{Launch, Report, Stage};

/// The descriptors that came with a launch, by what they are for.
pub struct Given {
    pub stdin: Option<OwnedFd>,
    pub files: Vec<OwnedFd>,
    /// Where the listener for the proxy is to be sent.
    pub proxy: Option<OwnedFd>,
    /// Kept open as long as the tool runs.
    pub held: Vec<OwnedFd>,
}

impl Given {
    pub fn sort(launch: &Launch, descriptors: Vec<OwnedFd>) -> Self {
        let mut descriptors = descriptors.into_iter();
        let stdin = descriptors.by_ref().take(usize::from(launch.stdin)).next();
        let files = descriptors.by_ref().take(launch.files).collect();
        let has_proxy = launch.sandbox.as_ref().is_some_and(|sandbox| sandbox.proxy);
        let proxy = descriptors.by_ref().take(usize::from(has_proxy)).next();
        Self { stdin, files, proxy, held: descriptors.collect() }
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
    confine: impl FnOnce() -> core::result::Result<(), Report>,
) -> core::result::Result<Pid, Report> {
    let files = pass_on(&given.files).map_err(Stage::Prepare.failed())?;
    given.files.clear();
    let paths: Vec<_> = files.iter().map(path).collect();
    // Ours no longer: who writes to it must learn when the tool has closed it.
    let stdin = match given.stdin.take() {
        Some(stdin) => stdin,
        None => rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(Stage::Prepare.failed())?,
    };
    let program = program(launch, &paths, stdin.as_fd()).map_err(Stage::Prepare.failed())?;
    rustix::process::chdir(launch.cwd.bytes()).map_err(Stage::Folder.failed())?;
    confine()?;
    begin(&program).map_err(Stage::Start.failed())
}

/// Lets the tool inherit these. Their numbers say nothing of what else this process has open.
fn pass_on(files: &[OwnedFd]) -> Result<Vec<OwnedFd>> {
    const FIRST: i32 = 10;
    let pass_on = |file: &OwnedFd| {
        let file = rustix::io::fcntl_dupfd_cloexec(file, FIRST)?;
        rustix::io::fcntl_setfd(&file, FdFlags::empty()).map(|()| file)
    };
    files.iter().map(pass_on).collect()
}

/// Where the tool will find it.
fn path(file: &OwnedFd) -> Vec<u8> {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into_bytes()
}

fn program<'a>(launch: &Launch, paths: &[Vec<u8>], stdin: BorrowedFd<'a>) -> Result<Program<'a>> {
    let path = files::text(launch.program.bytes(paths)?)?;
    let mut arguments = vec![path.clone()];
    for argument in &launch.args {
        arguments.push(files::text(argument.bytes(paths)?)?);
    }
    let variable = |(name, value): &(_, crate::wire::Word)| variable(name, &value.bytes(paths)?);
    let environment = launch.env.iter().map(variable).collect::<Result<_>>()?;
    Ok(Program { path, arguments, environment, part: Part::Tool { stdin, among_few: false } })
}

fn variable(name: &alloc::string::String, value: &[u8]) -> Result<CString> {
    let mut text = Vec::with_capacity(name.len() + 1 + value.len());
    text.extend_from_slice(name.as_bytes());
    text.push(b'=');
    text.extend_from_slice(value);
    files::text(text)
}

fn begin(program: &Program<'_>) -> Result<Pid> {
    // A process that Kiwi is just starting elsewhere may for a moment hold a copy of the descriptor through which the
    // program was written.
    for time in [1, 2, 4, 8, 16, 32, 64, 128] {
        match program.start() {
            Err(Errno::TXTBSY) => pause(Duration::from_millis(time)),
            other => return other,
        }
    }
    program.start()
}
