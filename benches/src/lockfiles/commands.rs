//! Whole commands among many lockfiles, each a process from start to end.

use anyhow::{Result, bail};
use std::path::Path;

use super::fixture::{Store, TOOL, fresh};
use crate::cold::once;
use crate::stats::{Samples, interleave, time};

/// Runs of each side of a cold call.
const CALLS: usize = 200;
/// Runs of what takes long.
const TURNS: usize = 9;

/// A strict call among few lockfiles, and among many.
pub fn strict(kiwi: &Path, few: &Store, many: &Store) -> Result<(Samples, Samples)> {
    for store in [few, many] {
        refused(kiwi, store)?;
    }
    interleave(CALLS, || call(kiwi, few, "strict"), || call(kiwi, many, "strict"))
}

/// A strict call, and one that looks at no lockfile.
pub fn strict_and_off(kiwi: &Path, store: &Store) -> Result<(Samples, Samples)> {
    interleave(CALLS, || call(kiwi, store, "strict"), || call(kiwi, store, "off"))
}

fn call(kiwi: &Path, store: &Store, mode: &str) -> Result<()> {
    once(store.project.command(kiwi).args(["run", TOOL, "--lock", mode]), true)
}

/// What was not frozen must not run: else nothing strict was measured.
fn refused(kiwi: &Path, store: &Store) -> Result<()> {
    let output = store.project.command(kiwi).args(["run", &fresh(0), "--lock", "strict"]).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() || !said.contains("has no lockfile") {
        bail!("a strict call without a lockfile ended with {}: {said}", output.status);
    }
    Ok(())
}

/// `lockfile freeze` of a tool that has no lockfile yet, among few and among many. Another tool each time.
pub fn freeze(kiwi: &Path, few: &Store, many: &Store) -> Result<(Samples, Samples)> {
    let (mut in_few, mut in_many) = (0, 0);
    interleave(TURNS, || freeze_next(kiwi, few, &mut in_few), || freeze_next(kiwi, many, &mut in_many))
}

fn freeze_next(kiwi: &Path, store: &Store, number: &mut usize) -> Result<()> {
    let tool = fresh(*number);
    *number += 1;
    once(store.project.command(kiwi).args(["lockfile", "freeze", &tool]), true)
}

/// `lockfile prune --dry-run`; a part of them is old.
pub fn prune(kiwi: &Path, store: &Store) -> Result<Samples> {
    let mut samples = Samples::default();
    for _ in 0..TURNS {
        let mut command = store.project.command(kiwi);
        let command = command.args(["lockfile", "prune", "--dry-run"]);
        samples.push(time(|| once(command, true))?.0);
    }
    Ok(samples)
}
