//! The bars of a registry: chains and searches among many versions, publishing, installing from it and from the cache.

mod asked;
mod people;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::Path;

use self::asked::Served;
use self::people::Person;
use crate::Setup;
use crate::report::{Report, both, figures, say};
use crate::row::Unit;
use crate::stats::{Samples, interleave, time};

const FEW: u64 = 1_000;
const MANY: u64 = 100_000;
const TURNS: usize = 1_000;
const SEARCHES: usize = 200;
const INSTALLS: usize = 15;
/// What a package of the chain weighs, so that fetching it is something.
const WEIGHT: usize = 16 << 20;

/// Measures everything, prints the table, writes the file; tells whether every bar holds.
pub fn run(setup: &Setup, postgres: &str) -> Result<bool> {
    let mut report = Report::new("registry");
    let scratch = tempfile::tempdir().context("no scratch folder")?;
    let file = |name: &str| scratch.path().join(name).display().to_string();
    let (front, _) = postgres.rsplit_once('/').context("no address of a database")?;
    for (engine, few, many, bar) in [
        ("SQLite", file("few.db"), file("many.db"), Some(1000.0)),
        ("PostgreSQL", format!("{front}/kiwi_few"), format!("{front}/kiwi_many"), None),
    ] {
        say(&format!("{engine}: 1,000 and 100,000 tools of five versions"));
        fill(&few, FEW)?;
        fill(&many, MANY)?;
        let (few, many) =
            (Served::start(setup, scratch.path(), &few)?, Served::start(setup, scratch.path(), &many)?);
        chains(&mut report, engine, bar, &few, &many)?;
        searches(&mut report, engine, &few, &many)?;
        people(&mut report, engine, setup, scratch.path(), many)?;
    }
    report.finish(&setup.out)
}

fn fill(database: &str, tools: u64) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(kiwi_registry::measured::fill(database, tools)).context("the database cannot be filled")
}

fn chains(report: &mut Report, engine: &str, bar: Option<f64>, few: &Served, many: &Served) -> Result<()> {
    say(&format!("{engine}: chains of three links"));
    let ask = |served: &Served, tools: u64, turn: u64| {
        let number = (turn * 7919) % (tools / 3) * 3 + 2;
        let chain = served.get(&format!("/v1/resolve/t{number}"))?;
        if chain.pointer("/links").and_then(Value::as_array).map(Vec::len) != Some(3) {
            bail!("t{number} has another chain: {chain}");
        }
        Ok(())
    };
    let (mut a, mut b) = (0, 0);
    let (with_few, with_many) = interleave(
        TURNS,
        || {
            a += 1;
            ask(few, FEW, a)
        },
        || {
            b += 1;
            ask(many, MANY, b)
        },
    )?;
    let what = format!("{engine}: a chain of three among 100,000 tools, over HTTP, median");
    match bar {
        Some(bar) => report.judge(&what, with_many.p50(), Unit::Microseconds, bar, figures(&with_many)),
        None => report.tell(&what, with_many.p50(), Unit::Microseconds, figures(&with_many)),
    }
    let what = format!("{engine}: a chain among 100,000 : among 1,000");
    report.judge(&what, with_many.p50() / with_few.p50(), Unit::Times, 2.0, both(&with_many, &with_few));
    Ok(())
}

fn searches(report: &mut Report, engine: &str, few: &Served, many: &Served) -> Result<()> {
    say(&format!("{engine}: searches"));
    let ask = |served: &Served, turn: u64| {
        let text = kiwi_registry::measured::description(turn * 31 % FEW).replace(' ', "%20");
        let found = served.get(&format!("/v1/search?q={text}&limit=50"))?;
        if found.pointer("/hits").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            bail!("nothing is found for {text}");
        }
        Ok(())
    };
    let (mut a, mut b) = (0, 0);
    let (with_few, with_many) = interleave(
        SEARCHES,
        || {
            a += 1;
            ask(few, a)
        },
        || {
            b += 1;
            ask(many, b)
        },
    )?;
    let what = format!("{engine}: a search among 100,000 tools, over HTTP, median");
    report.tell(&what, with_many.p50() / 1000.0, Unit::Milliseconds, figures(&with_many));
    let what = format!("{engine}: a search among 100,000 : among 1,000");
    report.judge(&what, with_many.p50() / with_few.p50(), Unit::Times, 2.0, both(&with_many, &with_few));
    Ok(())
}

fn people(report: &mut Report, engine: &str, setup: &Setup, scratch: &Path, served: Served) -> Result<()> {
    say(&format!("{engine}: publishing, and installing a chain of three"));
    let publisher = Person::new(setup, scratch, &served)?;
    publisher.write_chain(WEIGHT)?;
    for tool in ["bench_ground", "bench_middle", "bench_top"] {
        publisher.kiwi(&["publish", tool])?;
    }
    let mut times = Samples::default();
    for version in 0..INSTALLS {
        publisher.write_small(version)?;
        times.push(time(|| publisher.kiwi(&["publish", "bench_small"]))?.0);
    }
    let what = format!("{engine}: `kiwi publish` of a small tool, whole process, median");
    report.tell(&what, times.p50() / 1000.0, Unit::Milliseconds, figures(&times));
    let (mut first, mut again, mut offline) = (Samples::default(), Samples::default(), Samples::default());
    let mut readers = Vec::new();
    for _ in 0..INSTALLS {
        let reader = Person::new(setup, scratch, &served)?;
        first.push(time(|| reader.kiwi(&["install", "bench_top"]))?.0);
        reader.move_on()?;
        again.push(time(|| reader.kiwi(&["install", "bench_top"]))?.0);
        readers.push(reader);
    }
    drop(served);
    for reader in &readers {
        offline.push(time(|| reader.kiwi(&["install", "bench_top"]))?.0);
    }
    let what = format!("{engine}: the first install of a chain of three, 16 MiB each, median");
    report.tell(&what, first.p50() / 1000.0, Unit::Milliseconds, figures(&first));
    let what = format!("{engine}: the same in another project, from the cache");
    report.tell(&what, again.p50() / 1000.0, Unit::Milliseconds, figures(&again));
    let what = format!("{engine}: once more in that project, with nobody answering : the first");
    report.judge(&what, offline.p50() / first.p50(), Unit::Part, 1.0 / 50.0, both(&offline, &first));
    Ok(())
}
