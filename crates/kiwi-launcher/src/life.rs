//! The life of a launcher: it takes its orders, starts the tool, and stays until everything has ended.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, Result};
use rustix::process::{Pid, PidfdFlags};

use crate::folder::{Folder, remove_tree};
use crate::group::Group;
use crate::kernel::clock::Moment;
use crate::memory::keep_memory_private;
use crate::outside::{Engines, Outside};
use crate::start::{self, Given};
use crate::wire::{self, Exit, Launch, Opening, Report, Stage};
use crate::{ending, limits};

/// What a launcher has ready when its orders come.
pub enum Prepared {
    Nothing,
    /// It is ready as a whole, and has waited; the sandbox, if it has one.
    Spare(Option<Outside>),
}

/// Takes its orders and does what they say.
pub fn obey(control: &OwnedFd, engines: &dyn Engines, prepared: Prepared) -> Result<()> {
    let Some((opening, descriptors)) = wire::receive::<Opening>(control)? else { return Ok(()) };
    let folder = Folder::of(opening, descriptors)?;
    if let Prepared::Spare(outside) = &prepared {
        if outside.as_ref().is_some_and(Outside::has_spoken) {
            return Ok(());
        }
        // Only now can Kiwi count on it.
        wire::send_all(control, &wire::frame(&())?, &[])?;
    }
    let Some((launch, descriptors)) = wire::receive::<Launch>(control)? else { return Ok(()) };
    let ended = run(&launch, descriptors, control, engines, prepared);
    let report = ended.unwrap_or_else(|refused| refused);
    drop(folder);
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
    engines: &dyn Engines,
    prepared: Prepared,
) -> core::result::Result<Report, Report> {
    let is_walled = matches!(prepared, Prepared::Spare(Some(_)));
    if is_walled && (launch.sandbox.is_none() || launch.needs_group()) {
        // What is there was not born in the group, or is not wanted at all. Kiwi does not ask for it.
        return Err(Stage::Prepare.in_vain());
    }
    if launch.has_secrets {
        // Here and not only where a tool is confined: this process holds them too, and `trusted` confines nothing.
        limits::refuse_cores().map_err(Stage::Prepare.failed())?;
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
            remove_tree(scrap.bytes());
        }
        return Ok(report);
    };
    // As long as the tool runs. Of the rest nothing stays here: who writes to the tool must learn when it has closed.
    let _held = core::mem::take(&mut given.held);
    let outside = match prepared {
        Prepared::Spare(Some(outside)) => outside.hand_over(launch, sandbox, given),
        Prepared::Nothing | Prepared::Spare(None) => Outside::start(launch, sandbox, given, control, engines),
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
    let deadline = Moment::now().after(Duration::from_millis(launch.timeout_ms));
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
    deadline: Option<Moment>,
) -> Result<Event> {
    let tool = rustix::process::pidfd_open(tool, PidfdFlags::empty())?;
    let mut status = watched.filter(|watched| !watched.is_awaited).map(|watched| watched.outside);
    loop {
        let left = deadline.map(|deadline| deadline.left().unwrap_or_default());
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        let mut fds =
            vec![PollFd::new(&tool, PollFlags::IN), PollFd::new(control, PollFlags::IN | PollFlags::RDHUP)];
        fds.extend(status.map(|outside| PollFd::new(&outside.status, PollFlags::IN)));
        let ready = match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(0) if left.is_some_and(|left| !left.is_zero()) => continue,
            Ok(0) => return Ok(Event::TimeUp),
            Ok(_) => fds.into_iter().map(|fd| !fd.revents().is_empty()).collect::<Vec<bool>>(),
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno),
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
