//! The bars of the kernel, all in one run.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::fixture::Project;
use crate::plan::Planner;
use crate::report::{Report, both, figures, say};
use crate::row::Unit;
use crate::{Setup, cold, hash, instructions, peer, plan};

const FEW: usize = 10;
const MANY: usize = 10_000;
const PEER_CALLS: usize = 300;

/// Measures everything, prints the table, writes the file; tells whether every bar holds.
pub fn run(setup: &Setup, program: &peer::Program) -> Result<bool> {
    let scratch = tempfile::tempdir().context("no scratch folder")?;
    let folder = |name: &str| scratch.path().join(name);
    say("writing projects with 10 and with 10,000 tools");
    let few = Project::write(folder("few"), FEW)?;
    let many = Project::write(folder("many"), MANY)?;
    let large = Project::write(folder("large"), 0)?;
    let mut report = Report::new("kernel");

    say("warm plans");
    let (small, big) = (Planner::open(&few)?, Planner::open(&many)?);
    let warm = plan::warm(&small)?;
    report.judge("warm plan of a 3-link chain", warm.p50(), Unit::Microseconds, 50.0, figures(&warm));
    let (with_few, with_many) = plan::few_and_many(&small, &big)?;

    say("the peer ryeos-mcp, dry runs");
    let peer = peer::measure(program, &folder("peer"), PEER_CALLS)?;
    for (what, theirs) in [
        ("warm plan : dry_run of ryeos-mcp, over stdio", peer.stdio),
        ("warm plan : dry_run of ryeos-mcp, in process", peer.in_process),
    ] {
        let from = json!({"kiwi_us": warm.p50(), "peer_us": theirs, "peer": peer.said});
        report.judge(what, warm.p50() / theirs, Unit::Part, 0.01, from);
    }
    report.judge(
        "warm plan by id, 10,000 tools : 10 tools",
        with_many.p50() / with_few.p50(),
        Unit::Times,
        1.2,
        both(&with_many, &with_few),
    );

    say("cold calls");
    let (dry_few, dry_many) = cold::few_and_many(&setup.kiwi, &few, &many)?;
    report.judge(
        "cold call by id, 10,000 tools : 10 tools",
        dry_many.p50() / dry_few.p50(),
        Unit::Times,
        1.2,
        both(&dry_many, &dry_few),
    );
    let (kiwi, bash) = cold::against_bash(&setup.kiwi, &few)?;
    report.judge(
        "cold run of a Bash tool, above bash itself",
        (kiwi.p50() - bash.p50()) / 1000.0,
        Unit::Milliseconds,
        5.0,
        both(&kiwi, &bash),
    );
    report.tell(
        "starting /bin/true, for comparison",
        cold::floor()?.p50() / 1000.0,
        Unit::Milliseconds,
        Value::Null,
    );

    say("hashing 100 MB");
    let (verify, openssl) = hash::against_openssl(&setup.kiwi, &large)?;
    report.judge(
        "kiwi verify of a 100 MB tool : openssl dgst",
        verify.p50() / openssl.p50(),
        Unit::Times,
        1.3,
        both(&verify, &openssl),
    );

    say("counting instructions");
    match instructions::count(&setup.kiwi, &few)? {
        Some((warm, cold)) => {
            report.tell("instructions of a warm plan", thousands(warm), Unit::Kiloinstructions, Value::Null);
            let what = "instructions of a cold dry run";
            report.tell(what, thousands(cold), Unit::Kiloinstructions, Value::Null);
        }
        None => say("valgrind is not here: instructions are not counted"),
    }

    report.finish(&setup.out)
}

#[expect(clippy::cast_precision_loss, reason = "a count for people")]
fn thousands(count: u64) -> f64 {
    count as f64 / 1000.0
}
