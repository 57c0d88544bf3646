//! Finding items: how good the list is, how fast it comes among a million, and what a user would pick instead.

mod asker;
mod build;
mod chance;
mod command;
mod exact;
mod items;
mod million;
mod peers;
mod plain;
mod quality;
mod regimes;
mod sets;

pub use asker::{WORD as ASKER, run as asker};
pub use peers::Peers;

use anyhow::{Context, Result};
use std::path::Path;

use self::items::Items;
use self::sets::Set;
use crate::Setup;
use crate::report::Report;

const ITEMS: usize = 1_000_000;

/// Measures everything, prints the tables, writes the file; tells whether every bar holds.
pub fn run(setup: &Setup, sets: &Path, peers: &Peers) -> Result<bool> {
    let sets = Set::all(sets)?;
    let items = Items::of(&sets);
    let mut report = Report::new("search");
    // Beside the figures: a million items are too much for a folder in memory.
    let beside = setup.out.parent().unwrap_or(Path::new("."));
    let scratch = tempfile::tempdir_in(beside).context("no scratch folder")?;
    quality::measure(&mut report, &sets)?;
    let built = million::measure(&mut report, &sets, &items, ITEMS, scratch.path())?;
    command::measure(&mut report, &setup.kiwi, &sets, &items, scratch.path())?;
    command::from_disk(&mut report, &setup.kiwi, &items, ITEMS, scratch.path())?;
    peers::measure(&mut report, &sets, &items, (&built, peers, scratch.path()))?;
    report.finish(&setup.out)
}
