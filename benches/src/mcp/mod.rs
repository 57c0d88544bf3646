//! Calls through Kiwi, beside the same calls without it and through what a user would pick instead: one upstream, one
//! client, one run.

mod bare;
mod client;
mod peers;
mod subject;

pub use bare::serve as serve_bare;
pub use peers::Peers;
pub use subject::Subject;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::Setup;
use crate::report::{Report, figures, say};
use crate::row::Unit;
use crate::stats::{Samples, Side, rotate_rows};
use subject::place;

/// Calls of each side, where a call takes microseconds; and where it takes milliseconds.
const CALLS: usize = 3000;
const SLOW_CALLS: usize = 150;
/// So many calls of one side in a row, as a client makes them that talks to one server and to no other.
const ROW: usize = 100;
const SLOW_ROW: usize = 30;
/// Calls that are on their way at once, and how many in all.
const WIDE: u64 = 32;
const FLOOD: u64 = 6400;
const SLOW_FLOOD: u64 = 320;
/// Tools that are known when memory is looked at.
const MANY_TOOLS: usize = 1000;
/// Longer than it takes a process to come to rest.
const REST: Duration = Duration::from_secs(15);

/// Kiwi's pool as a server of its own.
const POOL: &str = "the pool, without the gate";

/// Measures.
pub fn run(setup: &Setup, upstream: &Path, peers: &Peers) -> Result<bool> {
    let mut report = Report::new("mcp");
    over_pipes(&mut report, setup, upstream)?;
    over_http(&mut report, setup, upstream, peers)?;
    four_verbs(&mut report, setup, upstream, peers)?;
    at_rest(&mut report, setup, upstream)?;
    report.finish(&setup.out)
}

/// Kiwi as the client of an agent starts it.
fn kiwi(setup: &Setup, project: &Path, home: &Path) -> Command {
    let mut command = Command::new(&setup.kiwi);
    command.current_dir(project).env("HOME", home).env("KIWI_TRUST", "1").env_remove("CI");
    command
}

/// Kiwi's pool, with nobody who decides anything.
fn bare(setup: &Setup, upstream: &Path, scratch: &Path) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("bare").arg(&setup.kiwi).arg(upstream).arg(scratch);
    Ok(command)
}

/// A text that is like no other: a client that says the same again and again is stopped.
fn text(number: usize) -> String {
    let mut seed = (number as u64).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut text = String::new();
    for _ in 0..3 {
        seed ^= seed >> 31;
        seed = seed.wrapping_mul(0xD6E8_FEB8_6659_FD93);
        // Writing to a String cannot fail.
        let _ = write!(text, "{seed:016x}");
    }
    text
}

/// Calls each in turn, `row` times before the next one.
fn compare(subjects: &mut [Subject], turns: usize, row: usize) -> Result<Vec<Samples>> {
    let mut sides: Vec<Side<'_>> = Vec::new();
    for subject in subjects {
        let mut number = 0;
        sides.push(Box::new(move || {
            number += 1;
            subject.call(&text(number))
        }));
    }
    rotate_rows(turns, row, &mut sides)
}

/// What Kiwi adds between an agent and a server, both over pipes. In memory, the disk costs nothing: what is left is
/// Kiwi's own work. On disk, the same with the wait for it.
fn over_pipes(report: &mut Report, setup: &Setup, upstream: &Path) -> Result<()> {
    say("calls over pipes: direct, through the pool alone, through the whole gate");
    let memory = tempfile::tempdir_in("/dev/shm").context("no folder in memory")?;
    let disk = tempfile::tempdir().context("no scratch folder")?;
    let (project, home) = place(memory.path(), upstream)?;
    let (disk_project, disk_home) = place(disk.path(), upstream)?;
    let mut subjects = [
        Subject::pipes("the upstream itself", "echo", &mut Command::new(upstream))?,
        Subject::pipes(POOL, "echo", &mut bare(setup, upstream, memory.path())?)?,
        Subject::pipes("kiwi mcp", "up.echo", kiwi(setup, &project, &home).args(["mcp", "--direct"]))?,
        Subject::pipes(
            "kiwi mcp, on disk",
            "up.echo",
            kiwi(setup, &disk_project, &disk_home).args(["mcp", "--direct"]),
        )?,
    ];
    let samples = compare(&mut subjects, CALLS, ROW)?;
    let [direct, bare, gate, disk] = samples.as_slice() else { anyhow::bail!("a side is missing") };
    report.tell(
        "over pipes: a call of the upstream itself",
        direct.p50(),
        Unit::Microseconds,
        figures(direct),
    );
    let added = |samples: &Samples| samples.p50() - direct.p50();
    report.judge("  added by the pool alone", added(bare), Unit::Microseconds, 50.0, figures(bare));
    report.judge("  added by the whole of Kiwi", added(gate), Unit::Microseconds, 110.0, figures(gate));
    report.tell("  the same with the wait for the disk", added(disk), Unit::Microseconds, figures(disk));
    // The same where every call finds its processes asleep, and the caches full of others.
    let seldom = compare(&mut subjects, CALLS, 1)?;
    if let [direct, bare, gate, _] = seldom.as_slice() {
        for (what, samples) in [("the pool alone", bare), ("the whole of Kiwi", gate)] {
            let what = format!("  the same in turn with others, call by call: {what}");
            report.tell(&what, samples.p50() - direct.p50(), Unit::Microseconds, figures(samples));
        }
    }
    let start = subjects.get(2).map_or(Duration::MAX, |kiwi| kiwi.start).as_secs_f64() * 1e3;
    report.judge("  Kiwi's start to its first answer", start, Unit::Milliseconds, 50.0, Value::Null);
    for subject in &mut subjects {
        tell_throughput(report, subject, FLOOD)?;
    }
    Ok(())
}

fn tell_throughput(report: &mut Report, subject: &mut Subject, count: u64) -> Result<()> {
    for width in [1, WIDE] {
        let rate = subject.throughput(width, if width == 1 { count / 8 } else { count })?;
        report.tell(
            &format!("  calls a second, {width} at once: {}", subject.name),
            rate,
            Unit::PerSecond,
            json!({"width": width}),
        );
    }
    Ok(())
}

/// Kiwi and its peers, all over HTTP. Of all of them only Kiwi waits for a disk: beside it stands a second one that has
/// its records in memory, and that one is compared.
fn over_http(report: &mut Report, setup: &Setup, upstream: &Path, peers: &Peers) -> Result<()> {
    say("calls over HTTP: direct, through the pool alone, through Kiwi, through its peers");
    let memory = tempfile::tempdir_in("/dev/shm").context("no folder in memory")?;
    let scratch = tempfile::tempdir().context("no scratch folder")?;
    let address = subject::free_address()?;
    let direct = quiet(Command::new(upstream).args(["--http", subject::port(&address)]))?;
    let pooled = subject::free_address()?;
    let pool = quiet(bare(setup, upstream, memory.path())?.arg(subject::port(&pooled)))?;
    let mut quick = vec![
        Subject::http("the upstream itself", "echo", &address, "/mcp", direct)?,
        Subject::http(POOL, "echo", &pooled, "/mcp", pool)?,
    ];
    for (name, folder) in [("Kiwi", memory.path()), ("Kiwi, on disk", scratch.path())] {
        let (project, home) = place(folder, upstream)?;
        let own = subject::free_address()?;
        let process = quiet(kiwi(setup, &project, &home).args(["serve", "--port", subject::port(&own)]))?;
        quick.push(Subject::http(name, "up.echo", &own, "/mcp/direct", process)?);
    }
    quick.push(peers.proxy(upstream)?);
    let mut slow = peers.gateways(&format!("http://{address}/mcp"), scratch.path())?;
    let samples = compare(&mut quick, CALLS / 3, ROW)?;
    let gateways = compare(&mut slow, SLOW_CALLS, SLOW_ROW)?;
    for (subject, samples) in quick.iter().zip(&samples).chain(slow.iter().zip(&gateways)) {
        let what = format!("over HTTP: a call of {}", subject.name);
        report.tell(&what, samples.p50(), Unit::Microseconds, figures(samples));
    }
    let [direct, pool, kiwi, _, proxy] = samples.as_slice() else { anyhow::bail!("a side is missing") };
    beside_proxy(report, direct, pool, kiwi, proxy);
    for (subject, samples) in slow.iter().zip(&gateways) {
        let ratio = kiwi.p50() / samples.p50();
        let from = json!({"kiwi": figures(kiwi), "peer": figures(samples)});
        report.judge(&format!("  Kiwi beside {}", subject.name), ratio, Unit::Part, 1.0 / 20.0, from);
    }
    let quick = quick.iter_mut().map(|subject| (subject, FLOOD));
    for (subject, count) in quick.chain(slow.iter_mut().map(|subject| (subject, SLOW_FLOOD))) {
        tell_throughput(report, subject, count)?;
        report.tell(&format!("  memory: {}", subject.name), subject.memory(), Unit::Mebibytes, Value::Null);
        let start = subject.start.as_secs_f64() * 1e3;
        report.tell(&format!("  start: {}", subject.name), start, Unit::Milliseconds, Value::Null);
    }
    Ok(())
}

/// `mcp-proxy` only passes calls on: it is compared with what does the same, Kiwi's pool, by what each adds to a call.
fn beside_proxy(report: &mut Report, direct: &Samples, pool: &Samples, kiwi: &Samples, proxy: &Samples) {
    let added = |samples: &Samples| samples.p50() - direct.p50();
    let from = json!({"direct": figures(direct), "pool": figures(pool), "peer": figures(proxy)});
    let what = "  added by Kiwi's pool : added by mcp-proxy";
    report.judge(what, added(pool) / added(proxy), Unit::Part, 1.0 / 20.0, from);
    let from = json!({"kiwi": figures(kiwi), "peer": figures(proxy)});
    report.tell("  Kiwi beside mcp-proxy, whole calls", kiwi.p50() / proxy.p50(), Unit::Part, from);
}

/// Starts a process that talks over the network alone.
fn quiet(command: &mut Command) -> Result<Child> {
    Ok(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
}

/// The peer with the same four verbs: what both say about a call without making it.
fn four_verbs(report: &mut Report, setup: &Setup, upstream: &Path, peers: &Peers) -> Result<()> {
    say("execute, as a rehearsal: Kiwi and the peer with the same verbs");
    let scratch = tempfile::tempdir().context("no scratch folder")?;
    let (project, home) = place(scratch.path(), upstream)?;
    std::fs::write(
        project.join(".ai/tools/rehearsed.sh"),
        "#!/usr/bin/env bash\n# kiwi: version: \"1.0.0\"\n# kiwi: tool_type: bash\n# kiwi: parameters: {type: object, properties: {n: {type: string}}}\necho hello\n",
    )?;
    let own = Subject::pipes("kiwi mcp", "execute", kiwi(setup, &project, &home).arg("mcp"))?;
    let mut kiwi = Samples::default();
    let mut peer = Samples::default();
    let mut other = peers.verbs(scratch.path())?;
    let mut client = own;
    for turn in 0..SLOW_CALLS {
        let arguments = json!({"item_type": "tool", "item_id": "rehearsed", "dry_run": true, "parameters": {"n": text(turn)}});
        let begun = std::time::Instant::now();
        client.client.call("execute", &arguments)?;
        kiwi.push(begun.elapsed());
        if turn % 10 == 0 {
            peer.push(other.rehearse()?);
        }
    }
    let from = json!({"kiwi": figures(&kiwi), "peer": figures(&peer)});
    report.judge(
        "execute, rehearsed: Kiwi beside ryeos-mcp",
        kiwi.p50() / peer.p50(),
        Unit::Part,
        1.0 / 20.0,
        from,
    );
    Ok(())
}

/// What Kiwi holds while nobody asks it anything, with many tools known.
fn at_rest(report: &mut Report, setup: &Setup, upstream: &Path) -> Result<()> {
    say("memory at rest, with a thousand tools");
    let scratch = tempfile::tempdir().context("no scratch folder")?;
    let (project, home) = place(scratch.path(), upstream)?;
    for number in 0..MANY_TOOLS {
        let text = format!(
            "tool_id: many_{number}\nversion: \"1.0.0\"\ntool_type: bash\ndescription: Tool number {number}, which does what its number says\nentrypoint: run.sh\nparameters: {{type: object, properties: {{input: {{type: string}}, count: {{type: integer}}}}}}\n"
        );
        let folder: PathBuf = project.join(format!(".ai/tools/many/many_{number}"));
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("tool.yaml"), text)?;
        std::fs::write(folder.join("run.sh"), "echo done\n")?;
    }
    let mut kiwi =
        Subject::pipes("kiwi mcp", "up.echo", kiwi(setup, &project, &home).args(["mcp", "--direct"]))?;
    kiwi.client.ask("tools/list", &json!({}))?;
    kiwi.call(&text(1))?;
    // It indexes what it has read, looks at everything once more, and only then rests.
    std::thread::sleep(REST);
    report.judge("memory at rest, 1,000 tools known", kiwi.memory(), Unit::Mebibytes, 30.0, Value::Null);
    Ok(())
}
