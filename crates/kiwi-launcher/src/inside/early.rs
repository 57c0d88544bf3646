//! A launcher that is the first process of its sandbox itself: there is nobody between Kiwi and it, so it keeps the time and
//! the locks as well, and removes the folder of the run. It begins while its order is being drawn up.
//!
//! It sees nothing of the host once its root is there, so it serves only what leaves nothing behind that it has no hold of:
//! no control group.

use rustix::fd::OwnedFd;
use rustix::io::Result;

use super::network::Network;
use super::{Beginning, Done, Keeper, Standing, Users, live};
use crate::folder::Folder;
use crate::kernel::namespaces::Namespaces;
use crate::limits;
use crate::memory::keep_memory_private;
use crate::settle::settle;
use crate::start::Given;
use crate::wire::{self, Launch, Opening, Stage, Wall};

/// The argument by which a launcher knows that it is the first process of its sandbox; behind it stands who is who.
pub const ROLE: &str = "walled";

/// What such a launcher is born in.
pub const BORN_IN: Namespaces = Namespaces::USERS
    .and(Namespaces::PROCESSES)
    .and(Namespaces::MOUNTS)
    .and(Namespaces::NAMES)
    .and(Namespaces::CONTROL_GROUPS);

/// Its whole life.
pub fn serve(users: &[&[u8]]) -> Result<()> {
    let control = settle()?;
    let begun = begin(users).map(Standing::Begun);
    obey(&control, begun, || Ok(()))
}

/// Takes its orders and does what they say. What went wrong before is told when the order is there: Kiwi listens from then on.
pub(super) fn obey(
    control: &OwnedFd,
    standing: Done<Standing>,
    agree: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let Some((opening, descriptors)) = wire::receive::<Opening>(control)? else { return Ok(()) };
    let folder = Folder::of(opening, descriptors)?;
    agree()?;
    let Some((launch, descriptors)) = wire::receive::<Launch>(control)? else { return Ok(()) };
    let mut given = Given::sort(&launch, descriptors);
    let _held = core::mem::take(&mut given.held);
    let standing = if launch.needs_group() { Err(Stage::Prepare.in_vain()) } else { standing };
    // Kiwi may be gone; then nobody wants the report.
    let _ = live(standing, &launch, given, control, Keeper::First(folder));
    Ok(())
}

/// As much as needs no order.
pub(super) fn begin(users: &[&[u8]]) -> Done<Beginning> {
    // Whatever is ordered may have secrets, and nothing in a sandbox leaves an image of its memory.
    limits::refuse_cores().map_err(Stage::Prepare.failed())?;
    let users = Users::read(users).map_err(Stage::Prepare.failed())?;
    // First, because it takes longest.
    let network = Network::begin().map_err(Stage::Wall(Wall::Namespaces).failed())?;
    users.settle()?;
    keep_memory_private().map_err(Stage::Wall(Wall::Privileges).failed())?;
    Beginning::with(network, true)
}
