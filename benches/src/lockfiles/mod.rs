//! The bars of lockfiles: one among a hundred thousand is found as fast as among ten.

mod commands;
mod fixture;
mod listing;
mod load;
mod one_file;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use self::fixture::Store;
use crate::Setup;
use crate::report::{Report, both, figures, say};
use crate::row::Unit;

const FEW: usize = 10;
const MANY: usize = 100_000;

/// Measures everything, prints the table, writes the file; tells whether every bar holds.
pub fn run(setup: &Setup) -> Result<bool> {
    let mut report = Report::new("lockfiles");
    let scratch = tempfile::tempdir().context("no scratch folder")?;
    let folder = |name: &str| scratch.path().join(name);
    say("writing projects with 10 and with 100,000 lockfiles");
    let few = Store::write(folder("few"), &setup.kiwi, FEW)?;
    let many = Store::write(folder("many"), &setup.kiwi, MANY)?;

    say("building the index");
    let rebuild = listing::rebuild(&setup.kiwi, &many)?;

    say("warm loads");
    let (with_few, with_many) = load::few_and_many(&few, &many)?;
    let from = both(&with_many, &with_few);
    let (p50, p99) = (with_many.p50(), with_many.quantile(0.99));
    report.judge("load by id among 100,000, median", p50, Unit::Microseconds, 1000.0, figures(&with_many));
    report.tell("load by id among 100,000, 99 of 100", p99, Unit::Microseconds, Value::Null);
    report.tell("load by id, 100,000 lockfiles : 10", p50 / with_few.p50(), Unit::Times, from);
    let (_, absent) = load::absent(&few, &many)?;
    let what = "load of an id that has none, among 100,000";
    report.tell(what, absent.p50(), Unit::Microseconds, figures(&absent));

    say("the peer: one JSON lock with 100,000 entries");
    let file = one_file::write(&folder("peer"), MANY)?;
    let bytes = std::fs::metadata(&file)?.len();
    let peer = one_file::find(&file, MANY)?;
    let from = json!({"bytes": bytes, "peer": figures(&peer), "kiwi": figures(&with_many)});
    report.tell(
        "finding one of 100,000 in one JSON lock",
        milliseconds(peer.p50()),
        Unit::Milliseconds,
        from,
    );
    report.tell("load by id : finding it in one JSON lock", p50 / peer.p50(), Unit::Part, Value::Null);

    say("cold calls");
    let (strict_few, strict_many) = commands::strict(&setup.kiwi, &few, &many)?;
    report.judge(
        "cold strict run, 100,000 lockfiles : 10",
        strict_many.p50() / strict_few.p50(),
        Unit::Times,
        1.2,
        both(&strict_many, &strict_few),
    );
    let (strict, off) = commands::strict_and_off(&setup.kiwi, &many)?;
    let above = milliseconds(strict.p50() - off.p50());
    report.tell("cold strict run, above --lock off", above, Unit::Milliseconds, both(&strict, &off));

    say("listings");
    let what = "lockfile list of 100,000 without an index";
    report.tell(what, seconds(rebuild.p50()), Unit::Seconds, figures(&rebuild));
    let (text, data) = listing::both_forms(&setup.kiwi, &many)?;
    for (name, listing) in [("lockfile list", text), ("lockfile list --json", data)] {
        for (until, samples) in [("first line", listing.first), ("end", listing.end)] {
            let what = format!("{name} of 100,000, {until}");
            report.tell(&what, milliseconds(samples.p50()), Unit::Milliseconds, figures(&samples));
        }
    }

    say("pruning and freezing");
    let prune = commands::prune(&setup.kiwi, &many)?;
    let what = "lockfile prune --dry-run of 100,000";
    report.tell(what, milliseconds(prune.p50()), Unit::Milliseconds, figures(&prune));
    let (frozen_few, frozen_many) = commands::freeze(&setup.kiwi, &few, &many)?;
    let from = both(&frozen_many, &frozen_few);
    report.tell(
        "one lockfile freeze among 10",
        milliseconds(frozen_few.p50()),
        Unit::Milliseconds,
        Value::Null,
    );
    report.tell(
        "one lockfile freeze among 100,000",
        milliseconds(frozen_many.p50()),
        Unit::Milliseconds,
        from,
    );
    report.finish(&setup.out)
}

fn milliseconds(microseconds: f64) -> f64 {
    microseconds / 1e3
}

fn seconds(microseconds: f64) -> f64 {
    microseconds / 1e6
}
