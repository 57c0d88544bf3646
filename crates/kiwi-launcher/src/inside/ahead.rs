//! A launcher that is the first process of a sandbox, and whose order is still to come. Everything that is the same for every
//! order is done already: namespaces, the greater part of the root, the network, and what can be put up of the walls.
//!
//! It has nothing of any call: no descriptor but its control and its two streams, no variable, no file.

use alloc::vec::Vec;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, Result};

use super::root::Root;
use super::{Beginning, Done, Standing, Walls, early};
use crate::plan::Sandbox;
use crate::settle::settle;
use crate::wire::{self, Stage, Wall};

/// The whole life of such a launcher. It says when it is ready, and leaves when nobody can give it an order any more, or when
/// the mounts of the host have changed: what is waiting in here must not keep the host busy.
pub fn serve(users: &[&[u8]]) -> Result<()> {
    let control = settle()?;
    let begun = early::begin(users);
    let Some((prepared, mounts)) = wire::receive::<Sandbox>(&control)? else { return Ok(()) };
    let mounts = mounts.into_iter().next().ok_or(Errno::INVAL)?;
    let cell = begun.and_then(|begun| Cell::prepare(begun, prepared)).map_err(|_| Errno::OPNOTSUPP)?;
    say_ready(&control)?;
    if !is_asked_for(&control, &mounts)? {
        return Ok(());
    }
    drop(mounts);
    early::obey(&control, Ok(Standing::Cell(cell)), || say_ready(&control))
}

fn say_ready(control: &OwnedFd) -> Result<()> {
    wire::send_all(control, &wire::frame(&())?, &[])
}

/// Waits for whatever comes first: Kiwi, or a change of the host's mounts.
fn is_asked_for(control: &OwnedFd, mounts: &OwnedFd) -> Result<bool> {
    loop {
        let mut fds = [PollFd::new(control, PollFlags::IN), PollFd::new(mounts, PollFlags::PRI)];
        match rustix::event::poll(&mut fds, None) {
            Ok(_) => {
                let [control, _] = fds;
                return Ok(!control.revents().is_empty());
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// Walls that stand but for what only the order tells.
pub(super) struct Cell {
    prepared: Sandbox,
    root: Root,
    walls: Walls,
}

impl Cell {
    fn prepare(begun: Beginning, prepared: Sandbox) -> Done<Self> {
        let Beginning { mut root, network } = begun;
        root.show_all(&prepared.view)?;
        network.move_in(prepared.sockets).map_err(Stage::Wall(Wall::Namespaces).failed())?;
        let walls = Walls::begin(&prepared)?;
        Ok(Self { prepared, root, walls })
    }

    /// Adds what this order has beyond the others. Whether what stands already is still what the host has, Kiwi sees for itself
    /// before it asks.
    pub(super) fn complete(self, sandbox: &Sandbox) -> Done<Walls> {
        let Self { prepared, mut root, walls: Walls { rules, last } } = self;
        let missing = sandbox.beyond(&prepared).ok_or(Stage::Prepare.in_vain())?;
        for (number, shown) in &missing {
            root.show(*number, shown)?;
        }
        let shown: Vec<_> = missing.into_iter().map(|(_, shown)| shown).collect();
        let rules = rules.and(sandbox, &shown).map_err(Stage::Wall(Wall::Landlock).failed())?;
        root.finish()?;
        Ok(Walls { rules, last })
    }
}
