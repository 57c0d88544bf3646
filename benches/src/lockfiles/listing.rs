//! Listings: without an index, which is built aloud, and with one, row by row.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::fixture::Store;
use crate::stats::{Samples, time};

const TURNS: usize = 9;
const REBUILDS: usize = 5;

/// `lockfile list` without an index. It must say how far it is.
pub fn rebuild(kiwi: &Path, store: &Store) -> Result<Samples> {
    let index = store.project.root().join(".ai/lockfiles/.index.json");
    let done = format!("reading lockfiles {0}/{0}", store.count());
    let mut samples = Samples::default();
    for _ in 0..REBUILDS {
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
#[derive(Default)]
pub struct Listing {
    /// Until the first line was there.
    pub first: Samples,
    /// Until all was there and the process was gone.
    pub end: Samples,
}

/// `lockfile list` with a good index, for people and as JSON; every lockfile must be in both.
pub fn both_forms(kiwi: &Path, store: &Store) -> Result<(Listing, Listing)> {
    let mut listings = (Listing::default(), Listing::default());
    // To warm up.
    listen(kiwi, store, &[], &mut Listing::default())?;
    let said: Value = serde_json::from_slice(&listen(kiwi, store, &["--json"], &mut Listing::default())?)?;
    if said.get("lockfiles").and_then(Value::as_array).map(Vec::len) != Some(store.count()) {
        bail!("not every lockfile is in the JSON");
    }
    drop(said);
    for _ in 0..TURNS {
        let text = listen(kiwi, store, &[], &mut listings.0)?;
        // One line before all, and one behind.
        let json = listen(kiwi, store, &["--json"], &mut listings.1)?;
        let found = [lines(&text), lines(&json).saturating_sub(2)];
        if found != [store.count(); 2] {
            bail!("{found:?} of {} lockfiles were listed", store.count());
        }
    }
    Ok(listings)
}

/// Reads a listing through a pipe, as it comes.
fn listen(kiwi: &Path, store: &Store, options: &[&str], times: &mut Listing) -> Result<Vec<u8>> {
    let (mut bytes, mut part, mut first) = (Vec::new(), vec![0; 64 << 10], None);
    let since = Instant::now();
    let mut child = list(kiwi, store, options).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut out = child.stdout.take().context("no pipe")?;
    loop {
        let count = out.read(&mut part)?;
        let new = part.get(..count).unwrap_or_default();
        if new.is_empty() {
            break;
        }
        if first.is_none() && new.contains(&b'\n') {
            first = Some(since.elapsed());
        }
        bytes.extend_from_slice(new);
    }
    let status = child.wait()?;
    times.end.push(since.elapsed());
    times.first.push(first.context("no line came")?);
    if !status.success() {
        bail!("a listing failed: {status}");
    }
    Ok(bytes)
}

fn lines(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte == b'\n').count().saturating_sub(1)
}

fn list(kiwi: &Path, store: &Store, options: &[&str]) -> Command {
    let mut command = store.project.command(kiwi);
    command.args(["lockfile", "list"]).args(options).stdin(Stdio::null());
    command
}
