//! The bars of running: what a start, a wall and a whole tool cost.

mod answering;
mod memory;
mod start;
mod tools;
mod uv;
mod walls;
mod warm;
mod words;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::path::PathBuf;

pub use self::memory::hold;
use crate::Setup;
use crate::report::{Report, both, figures, say};
use crate::row::Unit;
use crate::stats::Samples;

/// What takes part beside Kiwi.
pub struct Programs {
    /// The interpreter of the peer `ryeos-mcp`.
    pub python: PathBuf,
    /// The script that has the peer run tools.
    pub peer: PathBuf,
    /// The peer `uv`.
    pub uv: PathBuf,
}

/// Measures everything, prints the table, writes the file; tells whether every bar holds.
pub fn run(setup: &Setup, programs: &Programs) -> Result<bool> {
    let mut report = Report::new("exec");
    let scratch = tempfile::tempdir().context("no scratch folder")?;
    let folder = |name: &str| scratch.path().join(name);

    say("starts from processes that hold 0, 256 MiB and 1 GiB");
    in_memory(&mut report, &memory::measure(&setup.kiwi, &folder("scratch"), &programs.python)?)?;
    say("walls");
    behind_walls(&mut report, &walls::measure(&setup.kiwi, &folder("scratch"))?);
    say("cold Python and Bash tools, uv");
    let tools = tools::Tools::prepare(&setup.kiwi, folder("tools"))?;
    as_commands(&mut report, &tools.cold(&setup.kiwi, programs)?);
    say("warm Python and Bash tools, ryeos-mcp");
    let (python, bash) = tools.warm(&setup.kiwi, programs)?;
    as_calls(&mut report, &python, &bash);
    report.finish(&setup.out)
}

fn in_memory(report: &mut Report, times: &memory::BySize) -> Result<()> {
    let ([none, some, much], [fork_none, _, fork_much]) = (times.launcher.as_slice(), times.fork.as_slice())
    else {
        bail!("a size was not measured");
    };
    report.judge(
        "launcher start from a process of 1 GiB : of 0",
        much.p50() / none.p50(),
        Unit::Times,
        1.1,
        both(much, none),
    );
    report.tell("the same from one of 256 MiB", some.p50() / none.p50(), Unit::Times, both(some, none));
    let what = "fork and exec from a process of 1 GiB : of 0";
    report.tell(what, fork_much.p50() / fork_none.p50(), Unit::Times, both(fork_much, fork_none));
    report.tell("launcher start from 1 GiB", ms(much.p50()), Unit::Milliseconds, Value::Null);
    report.tell("fork and exec from 1 GiB", ms(fork_much.p50()), Unit::Milliseconds, Value::Null);
    Ok(())
}

fn behind_walls(report: &mut Report, walls: &walls::Walls) {
    let (ahead, anew) = (&walls.standard, &walls.standard_anew);
    for (what, bar, samples, standard) in [
        ("restricted, Kiwi's own walls built ahead, above standard", 1.0, &walls.native, ahead),
        ("restricted, walls by bwrap built ahead, above standard", 5.0, &walls.bubblewrap, ahead),
        ("restricted, Kiwi's own walls built anew, above standard", 1.0, &walls.native_anew, anew),
        ("restricted, walls by bwrap built anew, above standard", 5.0, &walls.bubblewrap_anew, anew),
    ] {
        let above = ms(samples.p50() - standard.p50());
        report.judge(what, above, Unit::Milliseconds, bar, both(samples, standard));
    }
    // The same by what a person sees: all that Kiwi adds to a start, its launcher included.
    let plain = &walls.plain;
    for (what, bar, samples) in [
        ("restricted, Kiwi's own walls built ahead, above a plain spawn", Some(1.0), &walls.native),
        ("restricted, walls by bwrap built ahead, above a plain spawn", Some(5.0), &walls.bubblewrap),
        ("restricted, Kiwi's own walls built anew, above a plain spawn", Some(1.0), &walls.native_anew),
        ("restricted, walls by bwrap built anew, above a plain spawn", Some(5.0), &walls.bubblewrap_anew),
        ("the same view by bwrap by hand, above a plain spawn", None, &walls.by_hand),
    ] {
        let (above, from) = (samples.p50() - plain.p50(), both(samples, plain));
        match bar {
            Some(bar) => report.judge(what, ms(above), Unit::Milliseconds, bar, from),
            None => report.tell(what, ms(above), Unit::Milliseconds, from),
        }
        // Times differ between machines, and between states of one; this differs less.
        report.tell("the same : that spawn", above / plain.p50(), Unit::Times, Value::Null);
    }
    let mut tell = |what: &str, samples: &Samples| {
        report.tell(what, ms(samples.p50()), Unit::Milliseconds, json!({"measured": figures(samples)}));
    };
    tell("plain posix_spawn of a static program", &walls.plain);
    tell("standard, its launcher there ahead", ahead);
    tell("restricted, Kiwi's own walls, built ahead", &walls.native);
    tell("restricted, walls by bwrap, built ahead", &walls.bubblewrap);
    tell("sandboxed with the proxy, Kiwi's own walls", &walls.native_proxy);
    tell("sandboxed with the proxy, walls by bwrap", &walls.bubblewrap_proxy);
    tell("standard, started anew", anew);
    tell("restricted, Kiwi's own walls, built anew", &walls.native_anew);
    tell("restricted, walls by bwrap, built anew", &walls.bubblewrap_anew);
    tell("bwrap by hand, the same view", &walls.by_hand);
}

fn as_commands(report: &mut Report, cold: &tools::Cold) {
    let mut ratio = |what: &str, bar: f64, other: &Samples| {
        let times = cold.python.p50() / other.p50();
        report.judge(what, times, Unit::Times, bar, both(&cold.python, other));
    };
    ratio("cold run of a Python tool : its interpreter itself", 1.15, &cold.python_itself);
    ratio("cold run of a Python tool : uv run, locked and synced", 1.0, &cold.uv_locked);
    let mut tell = |what: &str, samples: &Samples| {
        report.tell(what, ms(samples.p50()), Unit::Milliseconds, json!({"measured": figures(samples)}));
    };
    tell("cold run of a Python tool with three packages", &cold.python);
    tell("the interpreter of its environment itself", &cold.python_itself);
    tell("uv run --frozen --no-sync", &cold.uv_locked);
    tell("uv run --with, three packages", &cold.uv_with);
    tell("cold run of a Bash tool", &cold.bash);
    tell("bash itself", &cold.bash_itself);
}

/// Warm against warm: the kernel in this process with the peer's handler in its own, and with its server over stdio.
fn as_calls(report: &mut Report, python: &tools::Answered, bash: &tools::Answered) {
    let what = "warm call of a Python tool : its interpreter itself";
    let times = python.kiwi.p50() / python.itself.p50();
    report.judge(what, times, Unit::Times, 1.15, both(&python.kiwi, &python.itself));
    for (tool, bar, answered) in [("Python", 1.0, python), ("Bash", 0.1, bash)] {
        let unit = if tool == "Bash" { Unit::Part } else { Unit::Times };
        for (way, peer) in [("in process", &answered.handler), ("over stdio", &answered.stdio)] {
            let what = format!("warm call of a {tool} tool : ryeos-mcp {way}");
            let from = both(&answered.kiwi, peer);
            report.judge(&what, answered.kiwi.p50() / peer.p50(), unit, bar, from);
        }
        let what = format!("warm call of a {tool} tool");
        report.tell(&what, ms(answered.kiwi.p50()), Unit::Milliseconds, figures(&answered.kiwi));
        let what = "the same, without Kiwi";
        report.tell(what, ms(answered.itself.p50()), Unit::Milliseconds, figures(&answered.itself));
        let what = "the same in ryeos-mcp, in process";
        report.tell(what, ms(answered.handler.p50()), Unit::Milliseconds, Value::Null);
    }
}

fn ms(microseconds: f64) -> f64 {
    microseconds / 1e3
}
