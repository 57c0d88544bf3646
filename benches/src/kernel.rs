//! The bars of the kernel, all in one run.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::fixture::Project;
use crate::plan::Planner;
use crate::row::{Row, Unit, table};
use crate::stats::Samples;
use crate::{Setup, cold, hash, instructions, peer, plan};

const FEW: usize = 10;
const MANY: usize = 10_000;
const PEER_CALLS: usize = 300;

/// Measures everything, prints the table, writes the file; tells whether every bar holds.
pub fn run(setup: &Setup) -> Result<bool> {
    let scratch = tempfile::tempdir().context("no scratch folder")?;
    let folder = |name: &str| scratch.path().join(name);
    say("writing projects with 10 and with 10,000 tools");
    let few = Project::write(folder("few"), FEW)?;
    let many = Project::write(folder("many"), MANY)?;
    let large = Project::write(folder("large"), 0)?;
    let mut rows = Vec::new();
    let busy = busy();
    if let Some(busy) = busy.filter(|busy| *busy > 0.5) {
        say(&format!("the machine is busy ({busy:.1} per core): times come out worse than they are"));
    }

    say("warm plans");
    let (small, big) = (Planner::open(&few)?, Planner::open(&many)?);
    let warm = plan::warm(&small)?;
    rows.push(row("warm plan of a 3-link chain", warm.p50(), Unit::Microseconds, Some(50.0), figures(&warm)));
    let (with_few, with_many) = plan::few_and_many(&small, &big)?;
    let scaling = row(
        "warm plan by id, 10,000 tools : 10 tools",
        with_many.p50() / with_few.p50(),
        Unit::Times,
        Some(1.2),
        both(&with_many, &with_few),
    );

    say("the peer ryeos-mcp, dry runs");
    let peer = peer::measure(setup, &folder("peer"), PEER_CALLS)?;
    let against = |what: &str, theirs: f64| {
        row(
            what,
            warm.p50() / theirs,
            Unit::Part,
            Some(0.01),
            json!({"kiwi_us": warm.p50(), "peer_us": theirs, "peer": peer.said}),
        )
    };
    rows.push(against("warm plan : dry_run of ryeos-mcp, over stdio", peer.stdio));
    rows.push(against("warm plan : dry_run of ryeos-mcp, in process", peer.in_process));
    rows.push(scaling);

    say("cold calls");
    let (dry_few, dry_many) = cold::few_and_many(&setup.kiwi, &few, &many)?;
    rows.push(row(
        "cold call by id, 10,000 tools : 10 tools",
        dry_many.p50() / dry_few.p50(),
        Unit::Times,
        Some(1.2),
        both(&dry_many, &dry_few),
    ));
    let (kiwi, bash) = cold::against_bash(&setup.kiwi, &few)?;
    rows.push(row(
        "cold run of a Bash tool, above bash itself",
        (kiwi.p50() - bash.p50()) / 1000.0,
        Unit::Milliseconds,
        Some(5.0),
        both(&kiwi, &bash),
    ));
    rows.push(row(
        "starting /bin/true, for comparison",
        cold::floor()?.p50() / 1000.0,
        Unit::Milliseconds,
        None,
        Value::Null,
    ));

    say("hashing 100 MB");
    let (verify, openssl) = hash::against_openssl(&setup.kiwi, &large)?;
    rows.push(row(
        "kiwi verify of a 100 MB tool : openssl dgst",
        verify.p50() / openssl.p50(),
        Unit::Times,
        Some(1.3),
        both(&verify, &openssl),
    ));

    say("counting instructions");
    match instructions::count(&setup.kiwi, &few)? {
        Some((warm, cold)) => {
            rows.push(row(
                "instructions of a warm plan",
                thousands(warm),
                Unit::Kiloinstructions,
                None,
                Value::Null,
            ));
            let what = "instructions of a cold dry run";
            rows.push(row(what, thousands(cold), Unit::Kiloinstructions, None, Value::Null));
        }
        None => say("valgrind is not here: instructions are not counted"),
    }

    println!("\n{}", table(&rows));
    let holds = rows.iter().all(Row::holds);
    let rows: Vec<Value> = rows.iter().map(Row::json).collect();
    let text = serde_json::to_string_pretty(
        &json!({"area": "kernel", "holds": holds, "load_per_core": busy, "rows": rows}),
    )?;
    std::fs::write(&setup.out, text + "\n")
        .with_context(|| format!("cannot write {}", setup.out.display()))?;
    println!("figures: {}", setup.out.display());
    Ok(holds)
}

/// How busy the machine is: processes that want to run, per core, over the last minute.
fn busy() -> Option<f64> {
    let load = std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse::<f64>().ok()?;
    let cores = u32::try_from(std::thread::available_parallelism().ok()?.get()).ok()?;
    Some(load / f64::from(cores))
}

#[expect(clippy::cast_precision_loss, reason = "a count for people")]
fn thousands(count: u64) -> f64 {
    count as f64 / 1000.0
}

fn say(what: &str) {
    eprintln!("  {what} …");
}

fn row(what: &str, figure: f64, unit: Unit, bar: Option<f64>, from: Value) -> Row {
    Row { what: what.to_owned(), figure, unit, bar, from }
}

fn figures(samples: &Samples) -> Value {
    json!({"count": samples.count(), "p50_us": samples.p50(), "p95_us": samples.quantile(0.95), "min_us": samples.quantile(0.0)})
}

fn both(ours: &Samples, other: &Samples) -> Value {
    json!({"measured": figures(ours), "against": figures(other)})
}
