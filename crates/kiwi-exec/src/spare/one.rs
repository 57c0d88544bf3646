//! One spare, as Kiwi has it.

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::RecvFlags;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use super::surroundings::Surroundings;
use super::{Kind, Walls, Wish};
use crate::error::ExecError;
use crate::launcher::Role;
use crate::running::Started;
use crate::sandbox::{self, Builder, Sandbox, Shown, system_view};
use crate::snapshot::random_name;
use kiwi_launcher::spare::MOUNTS;
use kiwi_launcher::wire::{self, Launch};

/// How long one may take to become ready, or to leave.
const PATIENCE: Duration = Duration::from_secs(5);

/// A launcher that waits for its orders, in a sandbox that it has built, or without one.
#[derive(Debug)]
pub struct Spare {
    kind: Kind,
    started: Started,
    prepared: Option<Sandbox>,
    surroundings: Surroundings,
}

impl Spare {
    /// Makes one, and waits until it is ready. Whatever goes wrong goes wrong again, and is told, when somebody needs it.
    pub(super) fn make(wish: Wish) -> Option<Self> {
        let Wish { kind, view } = wish;
        let prepared = kind.walls.clone().map(|Walls { builder, sockets }| {
            let view = view.unwrap_or_else(|| system_view(sockets));
            sandbox::behind(builder, sockets, false, view)
        });
        // Before anything of it is there: what changes from now on is noticed.
        let surroundings = Surroundings::now(view_of(prepared.as_ref()))?;
        let started = start(&kind).ok()?;
        let spare = Self { kind, started, prepared, surroundings };
        // Once more: what has changed meanwhile may or may not have been seen.
        if spare.becomes_ready() && spare.is_good() {
            return Some(spare);
        }
        spare.leave();
        None
    }

    pub(super) const fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Whether this is exactly what it shows.
    pub(super) fn shows(&self, view: &[Shown]) -> bool {
        view_of(self.prepared.as_ref()) == view
    }

    /// Whether it comes to the same for this launch as one that is started anew.
    pub fn fits(&self, launch: &Launch) -> bool {
        match (&launch.sandbox, &self.prepared) {
            (None, None) => true,
            // A group counts whoever is born in it.
            (Some(sandbox), Some(prepared)) => !launch.needs_group() && sandbox.beyond(prepared).is_some(),
            _ => false,
        }
    }

    /// Whether everything around it is as it was when it was made, and it is still there.
    pub fn is_good(&self) -> bool {
        self.surroundings.are_unchanged(view_of(self.prepared.as_ref())) && self.is_silent()
    }

    /// Gives it a call to serve, and the first of its orders, with the folder that the run's own is made in. Whether it takes
    /// them, its answer tells.
    pub fn open(self, opening: &[u8], around: Option<&OwnedFd>, call: String) -> Started {
        let around: Vec<_> = around.into_iter().map(AsFd::as_fd).collect();
        let _ = wire::send(self.started.control(), opening, &around);
        self.started.with_call(call)
    }

    /// Ends it, and waits until nothing of it is left.
    pub(super) fn leave(self) {
        self.started.leave(PATIENCE);
    }

    fn becomes_ready(&self) -> bool {
        let Ok(ready) = wire::frame(&()) else { return false };
        let control = self.started.control();
        if !self.is_told() {
            return false;
        }
        let mut fds = [PollFd::new(control, PollFlags::IN)];
        let timeout = Timespec::try_from(PATIENCE).ok();
        if !rustix::event::poll(&mut fds, timeout.as_ref()).is_ok_and(|count| count > 0) {
            return false;
        }
        let mut said = vec![0; ready.len()];
        let received = rustix::net::recv(control, &mut *said, RecvFlags::DONTWAIT);
        received.is_ok_and(|(count, _)| count == ready.len()) && said == ready
    }

    /// Tells it what it is to have ready.
    fn is_told(&self) -> bool {
        let mounts = if is_native(&self.kind) { File::open(MOUNTS).ok() } else { None };
        let wanted = match &mounts {
            // One that is behind the walls itself cannot see the host's mounts.
            Some(_) => self.prepared.as_ref().map(wire::frame),
            None => Some(wire::frame(&self.prepared)),
        };
        let Some(Ok(wanted)) = wanted else { return false };
        let with: Vec<_> = mounts.iter().map(AsFd::as_fd).collect();
        wire::send(self.started.control(), &wanted, &with).is_ok_and(|sent| sent == wanted.len())
    }

    /// One that waits says nothing; one that says something, or has closed, is leaving.
    fn is_silent(&self) -> bool {
        let mut byte = [0];
        let flags = RecvFlags::DONTWAIT | RecvFlags::PEEK;
        let received = rustix::net::recv(self.started.control(), &mut byte, flags);
        received.is_err_and(|errno| errno == rustix::io::Errno::AGAIN)
    }
}

fn view_of(sandbox: Option<&Sandbox>) -> &[Shown] {
    sandbox.map_or(&[], |sandbox| &sandbox.view)
}

fn is_native(kind: &Kind) -> bool {
    kind.walls.as_ref().is_some_and(|walls| walls.builder == Builder::Native)
}

fn start(kind: &Kind) -> Result<Started, ExecError> {
    let role = if is_native(kind) { Role::SpareFirst } else { Role::Spare };
    Started::start(&kind.door, role, random_name()?)
}
