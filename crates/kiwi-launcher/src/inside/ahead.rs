//! A first process whose order is still to come. Everything that is the same for every order is done already: namespaces,
//! the greater part of the root, the network, and what can be written down of the walls.
//!
//! It has nothing of any call: no descriptor but its control and the two streams of its launcher, no variable, no file.

use alloc::vec::Vec;
use rustix::fd::OwnedFd;
use rustix::io::{Errno, Result};
use rustix::process::Pid;

use super::root::Root;
use super::{Beginning, Done, Keeper, Readiness, Standing, Walls, recognise};
use crate::memory::keep_memory_private;
use crate::plan::Sandbox;
use crate::start::Given;
use crate::wire::{self, Launch, Stage, Wall};

/// Walls that stand but for what only the order tells.
pub struct Cell {
    prepared: Sandbox,
    root: Root,
    walls: Walls,
}

/// Makes the first process of an order that is still to come, as a copy of this one. In the copy this never returns.
pub fn copy_ahead(prepared: &Sandbox, control: &OwnedFd) -> Done<Pid> {
    super::become_first(control, &[], || live(prepared, control))
}

/// The whole life of such a process: it says that it is ready, and waits. When nobody can give it an order any more, it
/// leaves.
fn live(prepared: &Sandbox, control: &OwnedFd) -> Result<()> {
    let cell = Cell::prepare(prepared).map_err(|_| Errno::OPNOTSUPP)?;
    wait_unseen(Readiness::Told, control)?;
    let Some((launch, descriptors)) = wire::receive::<Launch>(control)? else { return Ok(()) };
    let given = Given::sort(&launch, descriptors);
    super::live(Standing::Cell(cell), &launch, given, control, Keeper::Launcher)
}

/// What the first process is about to be told is for nobody of the same user to see, and they may have all the time they
/// want to look at it.
pub fn wait_unseen(readiness: Readiness, control: &OwnedFd) -> Result<()> {
    keep_memory_private()?;
    match readiness {
        Readiness::Told => wire::send_all(control, &wire::frame(&())?, &[]),
        Readiness::Untold => Ok(()),
    }
}

impl Cell {
    fn prepare(prepared: &Sandbox) -> Done<Self> {
        let Beginning { mut root, network } = Beginning::apart()?;
        root.show_all(&prepared.view)?;
        let walls = Walls::prepare(prepared)?;
        network.move_in(prepared.sockets).map_err(Stage::Wall(Wall::Namespaces).failed())?;
        Ok(Self { prepared: prepared.clone(), root, walls })
    }

    /// Adds what this order has beyond the others. What stands already must still be what the launcher finds on the host.
    pub fn complete(self, sandbox: &Sandbox) -> Done<Walls> {
        let Self { prepared, mut root, walls: Walls { rules, filter } } = self;
        let missing = sandbox.beyond(&prepared).ok_or(Stage::Prepare.in_vain())?;
        recognise(sandbox, |number| missing.iter().all(|(other, _)| *other != number))?;
        for (number, shown) in &missing {
            root.show(*number, shown)?;
        }
        let shown: Vec<_> = missing.into_iter().map(|(_, shown)| shown).collect();
        let rules = rules.and(sandbox, &shown).map_err(Stage::Wall(Wall::Landlock).failed())?;
        root.finish()?;
        Ok(Walls { rules, filter })
    }
}
