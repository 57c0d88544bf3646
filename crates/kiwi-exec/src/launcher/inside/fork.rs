//! The first process as a copy of the launcher: a program that is loaded already need not be loaded again.
#![expect(unsafe_code, reason = "what a copy of a process may do is not the compiler's to know")]

use nix::unistd::ForkResult;
use rustix::process::Pid;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use crate::launcher::start::{Given, failed};
use crate::sandbox::Sandbox;
use crate::wire::{Launch, Report, Stage, Wall};

/// Makes the first process of an order that is there. In the copy this never returns.
pub fn fork(launch: &Launch, given: Given, control: UnixStream) -> Result<Pid, Report> {
    let kept: Vec<_> = given.inside().iter().map(AsRawFd::as_raw_fd).collect();
    copy(control, kept, |control| super::live(launch, given, control))
}

/// Makes the first process of an order that is still to come. In the copy this never returns.
pub fn fork_ahead(prepared: &Sandbox, control: UnixStream) -> Result<Pid, Report> {
    copy(control, Vec::new(), |control| super::ahead::live(prepared, control))
}

fn copy(
    control: UnixStream,
    kept: Vec<i32>,
    life: impl FnOnce(&OwnedFd) -> io::Result<()>,
) -> Result<Pid, Report> {
    // SAFETY: the launcher has one thread, so the copy finds no lock held and no half-done change of memory.
    let forked = unsafe { nix::unistd::fork() }.map_err(failed(Stage::Wall(Wall::Namespaces)))?;
    let ForkResult::Parent { child } = forked else {
        let done = alone(kept, &control).and_then(|()| life(&control.into()));
        // Not a return: what the launcher still holds is the launcher's to clean up.
        std::process::exit(i32::from(done.is_err()));
    };
    Pid::from_raw(child.as_raw()).ok_or(Report::NotStarted { stage: Stage::Prepare, errno: 0 })
}

/// Lets go of everything of the launcher's that a copy holds too, but for these descriptors and the control.
fn alone(mut kept: Vec<i32>, control: &UnixStream) -> io::Result<()> {
    rustix::process::setpgid(None, None)?;
    rustix::stdio::dup2_stdin(control)?;
    kept.push(control.as_raw_fd());
    // SAFETY: whoever believes to have them is never run in this process, which ends before it returns to them.
    unsafe { close_fds::close_open_fds(3, &kept) };
    Ok(())
}
