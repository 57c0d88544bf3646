//! A launcher that is there, and has built a sandbox if it is to, before there is anything to start.
//!
//! It serves once. Without orders it leaves when Kiwi does, when its sandbox is gone, or when the mounts of the host have
//! changed, and takes everything along.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, Result};

use crate::life::{self, Prepared};
use crate::memory::keep_memory_private;
use crate::outside::{Engines, Outside};
use crate::plan::Sandbox;
use crate::settle::settle;
use crate::{ending, limits, wire};

/// The second argument by which a launcher knows that it is a spare.
pub const ROLE: &str = "spare";
/// Where the kernel tells of mounts, and whether they have changed.
pub const MOUNTS: &str = "/proc/self/mountinfo";

/// How long the first process has for leaving by itself.
const GRACE: Duration = Duration::from_millis(500);

/// The whole life of a spare.
pub fn serve(engines: &dyn Engines) -> Result<()> {
    let control = settle()?;
    let Some((wanted, _)) = wire::receive::<Option<Sandbox>>(&control)? else { return Ok(()) };
    let done = match prepare(wanted.as_ref(), &control) {
        Ok(Some(ready)) => life::obey(&control, engines, ready),
        other => other.map(|_| ()),
    };
    if !ending::nobody_left() {
        ending::end_everything(GRACE);
    }
    done
}

/// Builds it, says so, and waits until there are orders. `None`: there will be none, or nothing to follow them with.
fn prepare(wanted: Option<&Sandbox>, control: &OwnedFd) -> Result<Option<Prepared>> {
    let mounts = rustix::fs::open(MOUNTS, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut outside = None;
    if let Some(wanted) = wanted {
        // Whatever it will serve may have secrets, and nothing in a sandbox leaves an image of its memory.
        limits::refuse_cores()?;
        // Kiwi builds it anew when it needs one, and is then told what went wrong.
        let Ok(built) = Outside::prepare(wanted) else { return Ok(None) };
        if wait(Some(&built), control, &mounts)? != News::First
            || !matches!(wire::receive::<()>(&built.status), Ok(Some(_)))
        {
            return Ok(None);
        }
        outside = Some(built);
    }
    // Others of the same user have all the time they want to look at who waits here for secrets.
    keep_memory_private()?;
    wire::send_all(control, &wire::frame(&())?, &[])?;
    Ok((wait(outside.as_ref(), control, &mounts)? == News::Kiwi).then_some(Prepared::Spare(outside)))
}

/// What happens to a spare.
#[derive(PartialEq, Eq)]
enum News {
    /// The first process says something, or leaves.
    First,
    /// The host has mounted something, or unmounted it. What is waiting in here must not keep it busy.
    Mounts,
    /// Kiwi says something, or leaves.
    Kiwi,
}

fn wait(outside: Option<&Outside>, control: &OwnedFd, mounts: &OwnedFd) -> Result<News> {
    loop {
        let mut fds = vec![PollFd::new(mounts, PollFlags::PRI), PollFd::new(control, PollFlags::IN)];
        fds.extend(outside.map(|outside| PollFd::new(&outside.status, PollFlags::IN)));
        match rustix::event::poll(&mut fds, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        return Ok(match *ready.as_slice() {
            [_, _, true] => News::First,
            [true, ..] => News::Mounts,
            _ => News::Kiwi,
        });
    }
}
