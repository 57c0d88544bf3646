//! A launcher that builds a sandbox before there is anything to put into it, and then waits for its orders.
//!
//! It serves once. Without orders it leaves when Kiwi does, when its sandbox is gone, or when the mounts of the host have
//! changed, and takes everything along.

use rustix::event::{PollFd, PollFlags};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use super::outside::Outside;
use super::{ending, limits};
use crate::memory::keep_memory_private;
use crate::sandbox::Sandbox;
use crate::spare::MOUNTS;
use crate::wire;

/// How long the first process has for leaving by itself.
const GRACE: Duration = Duration::from_millis(500);

/// The whole life of a spare.
pub fn serve() -> io::Result<()> {
    let control = super::settle()?;
    let Some((wanted, _)) = wire::receive::<Sandbox>(&control)? else { return Ok(()) };
    // Whatever it will serve may have secrets.
    limits::refuse_cores()?;
    let done = match prepare(&wanted, &control) {
        Ok(Some(outside)) => super::obey(&control, Some(outside)),
        other => other.map(|_| ()),
    };
    if !ending::nobody_left() {
        ending::end_everything(GRACE);
    }
    done
}

/// Builds it, says so, and waits until there are orders. `None`: there will be none, or nothing to follow them with.
fn prepare(wanted: &Sandbox, control: &OwnedFd) -> io::Result<Option<Outside>> {
    let mounts = File::open(MOUNTS)?;
    // Kiwi builds it anew when it needs one, and is then told what went wrong.
    let Ok(outside) = Outside::prepare(wanted) else { return Ok(None) };
    let wait = || wait(&outside, control, &mounts);
    if wait()? != News::First || wire::receive::<()>(&outside.status)?.is_none() {
        return Ok(None);
    }
    // Others of the same user have all the time they want to look at who waits here for secrets.
    keep_memory_private()?;
    wire::send_all(control, &wire::frame(&())?, &[])?;
    Ok((wait()? == News::Kiwi).then_some(outside))
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

fn wait(outside: &Outside, control: &OwnedFd, mounts: &File) -> io::Result<News> {
    loop {
        let mut fds = [
            PollFd::new(&outside.status, PollFlags::IN),
            PollFd::new(mounts, PollFlags::PRI),
            PollFd::new(control, PollFlags::IN),
        ];
        match rustix::event::poll(&mut fds, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(errno) => return Err(errno.into()),
        }
        let [first, mounts, _] = fds.map(|fd| !fd.revents().is_empty());
        return Ok(if first {
            News::First
        } else if mounts {
            News::Mounts
        } else {
            News::Kiwi
        });
    }
}
