//! The launcher: a small resident process between Kiwi and a tool.
//!
//! It is the same binary as Kiwi, started with `__launch` and nothing else; what to do comes over its standard input.
//! It must stay cheap (no runtime, no threads) and must not trust the tool: the tool may kill it, stop it or fill its
//! pipes, and Kiwi has an answer to each ([`crate::orphans`], the backstop in [`crate::run`]).
//!
//! In a sandbox there is a second one, the first process of the sandbox ([`inside`]): a copy of the launcher, or, where
//! `bwrap` or a container engine builds the walls, the same binary with a second argument.

mod container;
mod ending;
mod group;
mod inside;
mod limits;
mod outside;
mod spare;
mod start;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags};
use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::memory::keep_memory_private;
use crate::process::Exit;
use crate::sandbox::PROBE;
use crate::snapshot::Snapshot;
use crate::spare::ROLE as SPARE;
use crate::wire::{self, Launch, Opening, Report, Stage};
use group::Group;
use outside::Outside;
use start::{Given, failed};

/// The whole life of a launcher. The binary calls this first thing when its first argument is
/// [`crate::Launcher::ARGUMENT`].
pub fn launcher_main() -> ExitCode {
    let role = std::env::args_os().nth(2);
    let done = match role.as_ref().and_then(|role| role.to_str()) {
        None => serve(),
        Some(SPARE) => spare::serve(),
        Some(inside::ROLE) => inside::serve(false),
        Some(inside::ROLE_AHEAD) => inside::serve(true),
        Some(inside::ROLE_CONTAINED) => inside::serve_contained(std::env::args_os().nth(3)),
        Some(PROBE) => Ok(()),
        Some(_) => Err(io::ErrorKind::InvalidInput.into()),
    };
    if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn serve() -> io::Result<()> {
    let control = settle()?;
    obey(&control, None)
}

/// Makes this process what every launcher is; where its orders come from.
fn settle() -> io::Result<OwnedFd> {
    // Whatever Kiwi itself inherited and did not mark stays out of the tool.
    close_fds::set_fds_cloexec(3, &[]);
    let control = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    // A session of its own: no terminal to read from or to type into, Ctrl-C reaches Kiwi alone, and every process
    // group in it belongs to the tool.
    rustix::process::setsid()?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(control)
}

/// What a launcher that has waited for its orders has ready.
struct Waited {
    /// The sandbox it has built.
    outside: Option<Outside>,
}

/// Takes its orders and does what they say.
fn obey(control: &OwnedFd, waited: Option<Waited>) -> io::Result<()> {
    let Some((opening, _)) = wire::receive::<Opening>(control)? else { return Ok(()) };
    let snapshot = opening.snapshot.map(|path| Snapshot::new(path.as_path().to_owned()));
    if let Some(Waited { outside }) = &waited {
        if outside.as_ref().is_some_and(Outside::has_spoken) {
            return Ok(());
        }
        // Only now can Kiwi count on it.
        wire::send_all(control, &wire::frame(&())?, &[])?;
    }
    let Some((launch, descriptors)) = wire::receive::<Launch>(control)? else { return Ok(()) };

    let prepared = waited.and_then(|waited| waited.outside);
    let report = run(&launch, descriptors, control, prepared).unwrap_or_else(|refused| refused);
    drop(snapshot);
    let bytes = wire::frame(&report)?;
    // Kiwi may be gone; then nobody wants the report.
    let _ = wire::send(control, &bytes, &[]);
    ending::wait_for_all();
    Ok(())
}

/// Starts the tool and stays until it and everything it started have ended.
fn run(
    launch: &Launch,
    descriptors: Vec<OwnedFd>,
    control: &OwnedFd,
    prepared: Option<Outside>,
) -> Result<Report, Report> {
    if prepared.is_some() && (launch.sandbox.is_none() || launch.needs_group()) {
        // What is there was not born in the group, or is not wanted at all. Kiwi does not ask for it.
        return Err(Report::NotStarted { stage: Stage::Prepare, errno: 0 });
    }
    if launch.has_secrets {
        // Here and not only where a tool is confined: this process holds them too, and `trusted` confines nothing.
        limits::refuse_cores().map_err(failed(Stage::Prepare))?;
    }
    let mut group = Group::enter(launch)?;
    let mut given = Given::sort(launch, descriptors);
    let Some(sandbox) = &launch.sandbox else {
        let confine = || if launch.confined { limits::confine(&launch.limits) } else { Ok(()) };
        let tool = start::start(launch, &mut given, confine);
        group.leave();
        let tool = tool?;
        guard(launch);
        let report = supervise(tool, control, launch, None);
        if let (Report::Cancelled, Some(scrap)) = (report, &launch.scrap) {
            // Kiwi may be gone. The lock is among what was given, so nobody has begun anew yet.
            let _ = std::fs::remove_dir_all(scrap.as_path());
        }
        return Ok(report);
    };
    let outside = match prepared {
        Some(mut outside) => outside.hand_over(launch, sandbox, &given).map(|()| outside),
        None => Outside::start(launch, sandbox, given, control),
    };
    group.leave();
    let outside = outside?;
    guard(launch);
    // Taking walls down takes as long as building some of them; only a group must wait for it, to be removed, and a
    // container must be gone when its call is over.
    let is_awaited = !group.is_empty() || outside.is_contained();
    Ok(supervise(outside.first, control, launch, Some(Watched { outside: &outside, is_awaited })))
}

/// Once everything is started: before, this process may have to write its own maps in `/proc`.
fn guard(launch: &Launch) {
    if launch.has_secrets {
        // There is nothing to refuse about it, and the tool is running.
        let _ = keep_memory_private();
    }
}

/// A sandbox whose first process is supervised.
#[derive(Clone, Copy)]
struct Watched<'a> {
    outside: &'a Outside,
    /// Whether its end is waited for, although it has said that all inside have ended.
    is_awaited: bool,
}

fn supervise(tool: Pid, control: &OwnedFd, launch: &Launch, watched: Option<Watched<'_>>) -> Report {
    let grace = Duration::from_millis(launch.grace_ms);
    let deadline = Instant::now().checked_add(Duration::from_millis(launch.timeout_ms));
    let end = || match watched {
        Some(watched) => watched.outside.end(grace),
        None => ending::end_everything(grace),
    };
    match wait_for_event(tool, control, watched, deadline) {
        Ok(Event::Said(report)) => report,
        Ok(Event::ToolEnded) => {
            let exit = ending::reap_tool(tool).unwrap_or(Exit::Signal(0));
            if !ending::nobody_left() {
                end();
            }
            watched.map_or(Report::Ended(exit), |watched| watched.outside.conclude(exit))
        }
        Ok(Event::TimeUp) => {
            end();
            Report::TimedOut
        }
        // An event that cannot be waited for is no reason to let the tool run unwatched.
        Ok(Event::Closed) | Err(_) => {
            end();
            Report::Cancelled
        }
    }
}

enum Event {
    ToolEnded,
    /// All inside a sandbox have ended.
    Said(Report),
    TimeUp,
    Closed,
}

fn wait_for_event(
    tool: Pid,
    control: &OwnedFd,
    watched: Option<Watched<'_>>,
    deadline: Option<Instant>,
) -> io::Result<Event> {
    let tool = rustix::process::pidfd_open(tool, PidfdFlags::empty())?;
    let mut status = watched.filter(|watched| !watched.is_awaited).map(|watched| watched.outside);
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        let mut fds =
            vec![PollFd::new(&tool, PollFlags::IN), PollFd::new(control, PollFlags::IN | PollFlags::RDHUP)];
        fds.extend(status.map(|outside| PollFd::new(&outside.status, PollFlags::IN)));
        let ready = match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(0) if left.is_some_and(|left| !left.is_zero()) => continue,
            Ok(0) => return Ok(Event::TimeUp),
            Ok(_) => fds.into_iter().map(|fd| !fd.revents().is_empty()).collect::<Vec<bool>>(),
            Err(rustix::io::Errno::INTR) => continue,
            Err(errno) => return Err(errno.into()),
        };
        // A tool that ended in the same moment has ended by itself.
        match *ready.as_slice() {
            [true, ..] => return Ok(Event::ToolEnded),
            [_, _, true] => {
                if let Some(report) = status.take().and_then(Outside::report) {
                    return Ok(Event::Said(report));
                }
                // It is about to end without a word; its end says more.
            }
            _ => return Ok(Event::Closed),
        }
    }
}
