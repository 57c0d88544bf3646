//! What `standard` promises, and limits of single processes. The launcher takes them upon itself; the tool inherits
//! them. Limits of a whole call are in [`super::group`].

use rustix::io::Result;
use rustix::process::{Resource, Rlimit};
use rustix::thread::CapabilitySet;

use crate::wire::{Limit, Limits, Report, Stage};

/// Enough for any tool; a limit of a billion, as some containers give, makes programs that close every possible
/// descriptor crawl.
const MOST_OPEN_FILES: u64 = 65_536;

/// Takes away the way to new privileges, and lowers limits.
pub fn confine(limits: &Limits) -> core::result::Result<(), Report> {
    rustix::thread::set_no_new_privs(true).map_err(Stage::Prepare.failed())?;
    refuse_cores().map_err(Stage::Prepare.failed())?;
    match limits.files {
        Some(files) => lower(Resource::Nofile, files, files),
        None => lower(Resource::Nofile, MOST_OPEN_FILES, u64::MAX),
    }
    .map_err(Stage::Limit(Limit::Files).failed())?;
    if let Some(seconds) = limits.cpu.map(whole_seconds) {
        // The first signal can be caught, the second not.
        lower(Resource::Cpu, seconds, seconds.saturating_add(1))
            .map_err(Stage::Limit(Limit::Cpu).failed())?;
    }
    Ok(())
}

/// No memory image of this process and of those it starts is kept, because it may hold secrets.
///
/// One byte, not none: where the system hands images to a program, it does so at a limit of zero too, and only at one
/// does it not. No image that goes to a file is that small.
pub fn refuse_cores() -> Result<()> {
    lower(Resource::Core, 1, 1)
}

/// Bounds the processes of the user namespace this process is in. The kernel counts them for each namespace of its own,
/// and exempts only the system's root.
pub fn bound_processes(most: u64) -> Result<()> {
    lower(Resource::Nproc, most, most)
}

/// Whatever is started from here gets no privileges; this process keeps its own.
pub fn renounce_privileges() -> Result<()> {
    rustix::thread::clear_ambient_capability_set()?;
    let held = rustix::thread::capabilities(None)?.effective;
    if held.contains(CapabilitySet::SETPCAP) {
        for capability in (0..64).map(|bit| CapabilitySet::from_bits_retain(1 << bit)) {
            // The first number the kernel does not know is the end of the list.
            if rustix::thread::remove_capability_from_bounding_set(capability).is_err() {
                break;
            }
        }
    }
    Ok(())
}

/// A part of a second counts as a whole one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "clamped before, and far below where whole numbers have gaps"
)]
fn whole_seconds(seconds: f64) -> u64 {
    let clamped = seconds.clamp(1.0, 1e9);
    let whole = clamped as u64;
    if (whole as f64) < clamped { whole + 1 } else { whole }
}

/// Only ever lowers: raising may need a capability.
fn lower(resource: Resource, soft: u64, hard: u64) -> Result<()> {
    let now = rustix::process::getrlimit(resource);
    let least = |now: Option<u64>, wanted: u64| Some(now.map_or(wanted, |now| now.min(wanted)));
    let maximum = if hard == u64::MAX { now.maximum } else { least(now.maximum, hard) };
    rustix::process::setrlimit(resource, Rlimit { current: least(now.current, soft), maximum })
}

#[cfg(test)]
mod tests {
    use super::whole_seconds;

    #[test]
    fn a_part_of_a_second_is_a_whole_one() {
        for (seconds, whole) in [(0.0, 1), (0.2, 1), (1.0, 1), (1.1, 2), (7.0, 7), (f64::MAX, 1_000_000_000)]
        {
            assert_eq!(whole_seconds(seconds), whole, "{seconds}");
        }
    }
}
