//! A first process whose order is still to come. Everything that is the same for every order is done already: namespaces,
//! the greater part of the root, the network, and what can be written down of the walls.
//!
//! It has nothing of any call: no descriptor but its control and the two streams of its launcher, no variable, no file.

use alloc::vec::Vec;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::{Errno, Result};
use rustix::process::Pid;

use super::root::Root;
use super::{Done, Readiness, Standing, Walls, begin_root, move_on, recognise};
use crate::memory::keep_memory_private;
use crate::plan::Sandbox;
use crate::start::Given;
use crate::wire::{self, Launch, Opening, Stage, Wall};

/// Walls that stand but for what only the order tells.
pub struct Cell {
    prepared: Sandbox,
    root: Root,
    walls: Walls,
}

/// Makes the first process of an order that is still to come, as a copy of this one. In the copy this never returns.
pub fn copy_ahead(prepared: &Sandbox, others: &OwnedFd, control: &OwnedFd) -> Done<Pid> {
    super::become_first(control, &[others.as_raw_fd()], || live(prepared, others, control))
}

/// The whole life of such a process: it says that it is ready, and waits. When nobody can give it an order any more, it
/// leaves.
fn live(prepared: &Sandbox, others: &OwnedFd, control: &OwnedFd) -> Result<()> {
    let cell = Cell::prepare(prepared, others).map_err(|_| Errno::OPNOTSUPP)?;
    wait_unseen(Readiness::Told, control)?;
    let Some((launch, descriptors)) = wire::receive::<Launch>(control)? else { return Ok(()) };
    let given = Given::sort(&launch, descriptors);
    super::live(Standing::Cell(cell), &launch, given, control)
}

/// Makes the first process of an order that is being drawn up. It takes the order itself, where the launcher would have,
/// and passes it on. In the copy this never returns.
pub fn copy_early(orders: OwnedFd, others: OwnedFd, control: &OwnedFd) -> Done<Pid> {
    let kept = [orders.as_raw_fd(), others.as_raw_fd()];
    super::become_first(control, &kept, || live_early(orders, others, control))
}

/// The whole life of such a process. What goes wrong before the order is told when it is there: with it the launcher learns
/// what it has to clear up.
fn live_early(orders: OwnedFd, others: OwnedFd, control: &OwnedFd) -> Result<()> {
    let unseen = keep_memory_private().map_err(Stage::Wall(Wall::Privileges).failed());
    let root = unseen.and_then(|()| begin_root());
    if wire::receive_and_pass_on::<Opening>(&orders, control)?.is_none() {
        return Ok(());
    }
    let Some((launch, descriptors)) = wire::receive_and_pass_on::<Launch>(&orders, control)? else {
        return Ok(());
    };
    // From here on Kiwi speaks with the launcher alone, which also holds what is to be held.
    drop(orders);
    let given = Given { namespaces: Some(others), held: Vec::new(), ..Given::sort(&launch, descriptors) };
    let root = if launch.needs_group() { Err(Stage::Prepare.in_vain()) } else { root };
    super::live(Standing::Root(root), &launch, given, control)
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
    fn prepare(prepared: &Sandbox, others: &OwnedFd) -> Done<Self> {
        let mut root = begin_root()?;
        root.show_all(&prepared.view)?;
        let walls = Walls::prepare(prepared)?;
        move_on(others, prepared.sockets).map_err(Stage::Wall(Wall::Namespaces).failed())?;
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
