//! What `standard` promises, and limits of single processes. The launcher takes them upon itself; the tool inherits
//! them. Limits of a whole call are in [`super::group`].

use rustix::process::{Resource, Rlimit};
use std::io;

use super::start::failed;
use crate::confinement::Limits;
use crate::wire::{Limit, Report, Stage};

/// Enough for any tool; a limit of a billion, as some containers give, makes programs that close every possible
/// descriptor crawl.
const MOST_OPEN_FILES: u64 = 65_536;

/// Takes away the way to new privileges, and lowers limits.
pub fn confine(limits: &Limits) -> Result<(), Report> {
    rustix::thread::set_no_new_privs(true).map_err(failed(Stage::Prepare))?;
    refuse_cores().map_err(failed(Stage::Prepare))?;
    match limits.files {
        Some(files) => lower(Resource::Nofile, files, files),
        None => lower(Resource::Nofile, MOST_OPEN_FILES, u64::MAX),
    }
    .map_err(failed(Stage::Limit(Limit::Files)))?;
    if let Some(seconds) = limits.cpu.map(whole_seconds) {
        // The first signal can be caught, the second not.
        lower(Resource::Cpu, seconds, seconds.saturating_add(1)).map_err(failed(Stage::Limit(Limit::Cpu)))?;
    }
    Ok(())
}

/// No memory image of this process and of those it starts is kept, because it may hold secrets.
///
/// One byte, not none: where the system hands images to a program, it does so at a limit of zero too, and only at one
/// does it not. No image that goes to a file is that small.
pub fn refuse_cores() -> io::Result<()> {
    lower(Resource::Core, 1, 1)
}

/// Bounds the processes of the user namespace this process is in. The kernel counts them for each namespace of its own,
/// and exempts only the system's root.
pub fn bound_processes(most: u64) -> io::Result<()> {
    lower(Resource::Nproc, most, most)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped before")]
fn whole_seconds(seconds: f64) -> u64 {
    seconds.ceil().clamp(1.0, 1e9) as u64
}

/// Only ever lowers: raising may need a capability.
fn lower(resource: Resource, soft: u64, hard: u64) -> io::Result<()> {
    let now = rustix::process::getrlimit(resource);
    let least = |now: Option<u64>, wanted: u64| Some(now.map_or(wanted, |now| now.min(wanted)));
    let maximum = if hard == u64::MAX { now.maximum } else { least(now.maximum, hard) };
    Ok(rustix::process::setrlimit(resource, Rlimit { current: least(now.current, soft), maximum })?)
}
