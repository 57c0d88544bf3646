//! The audit log: durable records, by callers who come together and by one alone.

use anyhow::{Context, Result, anyhow};
use kiwi_gate::Session;
use kiwi_gate::measured::Log;
use kiwi_model::Digest;
use kiwi_model::record::{Line, Record};
use kiwi_space::{Locations, Spaces};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

use crate::report::{Report, figures, say};
use crate::row::Unit;
use crate::stats::{Samples, time};

const CALLERS: usize = 8;
const RECORDS: usize = 20_000;

/// Measures the audit log by itself.
pub fn measure(report: &mut Report) -> Result<()> {
    let scratch = tempfile::tempdir().context("no scratch folder")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;

    say("durable records, eight callers");
    let log = log(&scratch.path().join("many"))?;
    let begun = Instant::now();
    runtime.block_on(together(&log))?;
    let each = begun.elapsed().as_secs_f64() * 1e6 / amount(RECORDS);
    let from = json!({"records": RECORDS, "callers": CALLERS, "records_per_second": 1e6 / each});
    report.judge("a durable record, eight callers (10,000/s)", each, Unit::Microseconds, 100.0, from);

    say("durable records, one caller");
    let (session, mut alone) = (Session::start(), Samples::default());
    let record = record(session, 1)?;
    for _ in 0..2000 {
        let record = record.clone();
        let (took, ()) =
            time(|| runtime.block_on(log.append(session, record)).map_err(|fault| anyhow!("{fault}")))?;
        alone.push(took);
    }
    report.tell("a durable record, one caller", alone.p50(), Unit::Microseconds, figures(&alone));

    say("sealing alone");
    let mut sealing = Samples::default();
    for seq in 1..20_000 {
        sealing.push(time(|| Ok(Line::seal(seq, &record, Some(Digest::of(b"before")))?))?.0);
    }
    report.tell("sealing a line, no disk", sealing.p50(), Unit::Microseconds, figures(&sealing));
    Ok(())
}

async fn together(log: &Log) -> Result<()> {
    let callers = (0..CALLERS).map(|_| {
        let log = log.clone();
        tokio::spawn(async move {
            let session = Session::start();
            let record = record(session, 1)?;
            for _ in 0..RECORDS / CALLERS {
                log.append(session, record.clone()).await.map_err(|fault| anyhow!("{fault}"))?;
            }
            anyhow::Ok(())
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await??;
    }
    Ok(())
}

fn log(folder: &Path) -> Result<Log> {
    let (project, home) = (folder.join("project"), folder.join("home"));
    std::fs::create_dir_all(project.join(".ai"))?;
    std::fs::create_dir_all(&home)?;
    let spaces = Spaces::open(Locations { project: None, cwd: project, user: Some(home) })?;
    Ok(Log::of(&spaces))
}

/// What a call of a three-link chain leaves.
fn record(session: Session, number: usize) -> Result<Record> {
    let digest = Digest::of(b"some tool");
    let link = |id: &str| json!({"tool_id": id, "version": "1.0.0", "integrity": digest});
    let value: Value = json!({
        "event": "enter", "at": "2026-01-01T00:00:00.000000Z", "session": session.to_string(), "caller": "cli:bench",
        "tool": "some.tool", "version": "1.0.0", "integrity": digest, "chain_hash": digest,
        "chain": [link("some.tool"), link("python_runtime"), link("subprocess")],
        "params": {"number": number, "text": "words of a parameter"}, "params_hash": digest,
    });
    Ok(serde_json::from_value(value)?)
}

#[expect(clippy::cast_precision_loss, reason = "a count for people")]
fn amount(count: usize) -> f64 {
    count as f64
}
