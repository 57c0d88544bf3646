//! A first process whose order is still to come. Everything that is the same for every order is done already: namespaces,
//! the greater part of the root, the network, and what can be written down of the walls.
//!
//! It has nothing of any call: no descriptor but its control and the two streams of its launcher, no variable, no file.

use std::io;
use std::os::fd::OwnedFd;

use super::root::Root;
use super::{Walls, enter_namespaces, move_on, recognise};
use crate::launcher::start::{Given, failed};
use crate::memory::keep_memory_private;
use crate::sandbox::Sandbox;
use crate::wire::{self, Launch, Report, Stage, Wall};

/// Walls that stand but for what only the order tells.
pub struct Cell {
    prepared: Sandbox,
    root: Root,
    walls: Walls,
}

/// The whole life of such a process: it says that it is ready, and waits. When nobody can give it an order any more, it
/// leaves.
pub fn live(prepared: &Sandbox, control: &OwnedFd) -> io::Result<()> {
    let cell = Cell::prepare(prepared, control).map_err(|_| io::ErrorKind::Unsupported)?;
    wait_unseen(control)?;
    let Some((launch, descriptors)) = wire::receive::<Launch>(control)? else { return Ok(()) };
    let given = Given::sort(&launch, descriptors);
    super::live_in(Some(cell), &launch, given, control)
}

/// Says that the first process is ready. What it is about to be told is for nobody of the same user to see, and they have
/// all the time they want to look at it.
pub fn wait_unseen(control: &OwnedFd) -> io::Result<()> {
    keep_memory_private()?;
    wire::send_all(control, &wire::frame(&())?, &[])
}

impl Cell {
    fn prepare(prepared: &Sandbox, control: &OwnedFd) -> Result<Self, Report> {
        enter_namespaces().map_err(failed(Stage::Wall(Wall::Namespaces)))?;
        let root = Root::build(&prepared.view)?;
        let walls = Walls::prepare(prepared)?;
        move_on(control).map_err(failed(Stage::Wall(Wall::Namespaces)))?;
        Ok(Self { prepared: prepared.clone(), root, walls })
    }

    /// Adds what this order has beyond the others. What stands already must still be what the launcher finds on the host.
    pub fn complete(self, sandbox: &Sandbox) -> Result<Walls, Report> {
        let Self { prepared, mut root, walls: Walls { rules, filter } } = self;
        let unfit = Report::NotStarted { stage: Stage::Prepare, errno: 0 };
        let missing = sandbox.beyond(&prepared).ok_or(unfit)?;
        recognise(sandbox, |number| missing.iter().all(|(other, _)| *other != number))?;
        for (number, shown) in &missing {
            root.show(*number, shown)?;
        }
        let shown: Vec<_> = missing.into_iter().map(|(_, shown)| shown).collect();
        let rules = rules.and(sandbox, &shown).map_err(failed(Stage::Wall(Wall::Landlock)))?;
        root.finish()?;
        Ok(Walls { rules, filter })
    }
}
