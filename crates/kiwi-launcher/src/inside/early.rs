//! A launcher that is the first process of its sandbox itself: there is nobody between Kiwi and it, so it keeps the time and
//! the locks as well. It begins while its order is being drawn up.
//!
//! It sees nothing of the host once its root is there, so it serves only what leaves nothing behind on the host: no folder
//! of the run, no control group.

use rustix::io::{Errno, Result};

use super::network::Network;
use super::{Beginning, Done, Keeper, Standing, Users, live};
use crate::kernel::namespaces::Namespaces;
use crate::memory::keep_memory_private;
use crate::start::Given;
use crate::wire::{self, Launch, Opening, Stage, Wall};
use crate::{life, limits};

/// The second argument by which a launcher knows that it is the first process of its sandbox; behind it stands who is who.
pub const ROLE: &str = "walled";

/// What such a launcher is born in.
pub const BORN_IN: Namespaces = Namespaces::USERS
    .and(Namespaces::PROCESSES)
    .and(Namespaces::MOUNTS)
    .and(Namespaces::NAMES)
    .and(Namespaces::CONTROL_GROUPS);

/// Its whole life. What goes wrong before the order is told when the order is there: Kiwi listens from then on.
pub fn serve(users: &[&[u8]]) -> Result<()> {
    let users = Users::read(users)?;
    let control = life::settle()?;
    // Whatever is ordered may have secrets, and nothing in a sandbox leaves an image of its memory.
    limits::refuse_cores()?;
    let begun = begin(users);
    match wire::receive::<Opening>(&control)? {
        None => return Ok(()),
        Some((Opening { snapshot: None }, _)) => {}
        // Nobody would remove it.
        Some(_) => return Err(Errno::INVAL),
    }
    let Some((launch, descriptors)) = wire::receive::<Launch>(&control)? else { return Ok(()) };
    let mut given = Given::sort(&launch, descriptors);
    let _held = core::mem::take(&mut given.held);
    let begun = if launch.needs_group() { Err(Stage::Prepare.in_vain()) } else { begun };
    // Kiwi may be gone; then nobody wants the report.
    let _ = live(Standing::Begun(begun), &launch, given, &control, Keeper::First);
    Ok(())
}

fn begin(users: Users) -> Done<Beginning> {
    // First, because it takes longest.
    let network = Network::begin().map_err(Stage::Wall(Wall::Namespaces).failed())?;
    users.settle()?;
    keep_memory_private().map_err(Stage::Wall(Wall::Privileges).failed())?;
    Beginning::with(network)
}
