//! Whole commands among many lockfiles, each a process from start to end.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

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

/// `lockfile list` without an index. It must say how far it is.
pub fn rebuild(kiwi: &Path, store: &Store) -> Result<Samples> {
    let index = store.project.root().join(".ai/lockfiles/.index.json");
    let done = format!("reading lockfiles {0}/{0}", store.count());
    let mut samples = Samples::default();
    for _ in 0..TURNS / 2 {
        if index.exists() {
            std::fs::remove_file(&index)?;
        }
        let mut command = list(kiwi, store, &[]);
        let (took, output) = time(|| Ok(command.stdout(Stdio::null()).output()?))?;
        let said = String::from_utf8_lossy(&output.stderr);
        let steps = said.lines().filter(|line| line.starts_with("reading lockfiles ")).count();
        if !output.status.success() || steps < 5 || !said.lines().any(|line| line == done) {
            bail!("the index was not built aloud ({steps} steps, {}): {said}", output.status);
        }
        if !index.is_file() {
            bail!("the index was not written");
        }
        samples.push(took);
    }
    Ok(samples)
}

/// Times of a listing: until its first line, and until its end.
pub struct Listing {
    /// Until the first line was there.
    pub first: Samples,
    /// Until all was there and the process was gone.
    pub end: Samples,
}

/// `lockfile list` with a good index, read through a pipe; every lockfile must be in it.
pub fn listing(kiwi: &Path, store: &Store, json: bool) -> Result<Listing> {
    let options: &[&str] = if json { &["--json"] } else { &[] };
    let mut listing = Listing { first: Samples::default(), end: Samples::default() };
    for turn in 0..=TURNS {
        let mut bytes = Vec::with_capacity(64 << 20);
        let since = Instant::now();
        let mut child = list(kiwi, store, options).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut out = child.stdout.take().context("no pipe")?;
        let mut part = vec![0; 64 << 10];
        let mut first = None;
        loop {
            let count = out.read(&mut part)?;
            if count == 0 {
                break;
            }
            bytes.extend_from_slice(part.get(..count).unwrap_or_default());
            if first.is_none() && bytes.contains(&b'\n') {
                first = Some(since.elapsed());
            }
        }
        let status = child.wait()?;
        let end = since.elapsed();
        let found = if json { entries(&bytes)? } else { bytes.iter().filter(|byte| **byte == b'\n').count() };
        if !status.success() || found != store.count() {
            bail!("{found} of {} lockfiles were listed ({status})", store.count());
        }
        // The first is to warm up.
        if turn > 0 {
            listing.first.push(first.context("no line came")?);
            listing.end.push(end);
        }
    }
    Ok(listing)
}

fn entries(bytes: &[u8]) -> Result<usize> {
    let said: Value = serde_json::from_slice(bytes).context("the listing is not JSON")?;
    Ok(said.get("lockfiles").and_then(Value::as_array).map_or(0, Vec::len))
}

fn list(kiwi: &Path, store: &Store, options: &[&str]) -> Command {
    let mut command = store.project.command(kiwi);
    command.args(["lockfile", "list"]).args(options).stdin(Stdio::null());
    command
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
