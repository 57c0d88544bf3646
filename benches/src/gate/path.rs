//! The whole path of a call, without what it is for: planning and the effect are counted apart, and so is the disk.

use anyhow::{Context, Result, bail};
use kiwi_gate::measured::without_effects;
use kiwi_gate::{Arguments, Caller, Host, Kernel, Request, Session};
use kiwi_model::ToolRef;
use kiwi_space::{Locations, Spaces, Transport};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

use crate::report::{Report, figures, say};
use crate::row::Unit;
use crate::stats::Samples;

const CALLS: u64 = 2000;
const TOOL: &str = "#!/usr/bin/env bash\n# kiwi: version: \"1.0.0\"\n# kiwi: permissions: {filesystem_read: [\"data/**\"]}\ncat > /dev/null\n";

/// What the stages of the gate cost one caller, above a bare dispatch.
pub fn measure(report: &mut Report, kiwi: &Path) -> Result<()> {
    say("the whole gate, one caller");
    let disk = Place::new(tempfile::tempdir().context("no scratch folder")?, kiwi)?;
    let memory = Place::new(tempfile::tempdir_in("/dev/shm").context("no folder in memory")?, kiwi)?;
    let idle = without_effects(disk.kernel()?);
    let in_memory = without_effects(memory.kernel()?);
    for (what, kernel, transport, bar) in [
        ("the gate alone, a person calls", &idle, Transport::Cli, Some(60.0)),
        ("the gate alone, an agent calls", &idle, Transport::Mcp, None),
        ("the same in memory, a person calls", &in_memory, Transport::Cli, None),
        ("the same in memory, an agent calls", &in_memory, Transport::Mcp, None),
        ("the gate around a Bash tool, a person calls", &disk.kernel()?, Transport::Cli, None),
    ] {
        let (own, waited) = calls(kernel, transport)?;
        match bar {
            Some(bar) => report.judge(what, own.p50(), Unit::Microseconds, bar, figures(&own)),
            None => report.tell(what, own.p50(), Unit::Microseconds, figures(&own)),
        }
        report.tell("  and its wait for the disk", waited.p50(), Unit::Microseconds, figures(&waited));
    }
    Ok(())
}

/// A project with one quiet tool, and a home, for as long as this is there.
struct Place {
    _scratch: TempDir,
    spaces: Arc<Spaces>,
    host: Host,
}

impl Place {
    fn new(scratch: TempDir, kiwi: &Path) -> Result<Self> {
        let (project, home) = (scratch.path().join("project"), scratch.path().join("home"));
        for folder in [project.join(".ai/tools"), project.join("data"), home.clone()] {
            std::fs::create_dir_all(folder)?;
        }
        kiwi_space::scaffold(&project)?;
        std::fs::write(project.join(".ai/tools/quiet.sh"), TOOL)?;
        // What was just written is looked at again at every call until the clock has moved on.
        std::thread::sleep(Duration::from_millis(50));
        let path = std::env::var("PATH").context("PATH is not set")?;
        let host = Host {
            environment: [("PATH".to_owned(), path), ("KIWI_TRUST".to_owned(), "1".to_owned())].into(),
            kiwi: kiwi.to_owned(),
            launcher: None,
            cwd: project.clone(),
            scratch: scratch.path().to_owned(),
            has_terminal: false,
            authorize: None,
        };
        let spaces = Spaces::open(Locations { project: None, cwd: project, user: Some(home) })?;
        Ok(Self { _scratch: scratch, spaces: Arc::new(spaces), host })
    }

    fn kernel(&self) -> Result<Kernel> {
        Ok(Kernel::new(Arc::clone(&self.spaces), self.host.clone())?)
    }
}

/// What the gate itself took for each call of a client that stays, and what it waited for the disk.
fn calls(kernel: &Kernel, transport: Transport) -> Result<(Samples, Samples)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let synced = || kernel.counters().iter().find(|(name, _)| *name == "audit_sync_us").map_or(0, |it| it.1);
    let session = Session::start();
    let (mut own, mut disk) = (Samples::default(), Samples::default());
    for number in 0..CALLS {
        // Calls that get somewhere: the loop brake is not what is measured.
        let params: Map<String, Value> = [("number".to_owned(), json!(number))].into_iter().collect();
        let arguments = Arguments::from(params);
        let mut request = Request::new(ToolRef::parse("quiet")?, arguments, Caller::cli("bench"), session);
        request.transport = transport;
        let before = synced();
        let outcome = runtime.block_on(kernel.call(request));
        if let Some(fault) = outcome.error {
            bail!("the call failed: {fault}");
        }
        let waited = synced() - before;
        own.push(Duration::from_micros(outcome.timing_us.gate.saturating_sub(waited)));
        disk.push(Duration::from_micros(waited));
    }
    Ok((own, disk))
}
