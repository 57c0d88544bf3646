//! The path of a call, start to end.

use kiwi_chain::{Caches, Mode, Plan, Tool, invocation};
use kiwi_exec::Launcher;
use kiwi_model::record::{CallResult, Event, Record as Entry};
use kiwi_model::{Explain, Fault, Status, ToolRef};
use kiwi_space::Spaces;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Instant;

use crate::audit::{AuditLog, Durability, now};
use crate::host::Host;
use crate::outcome::{Outcome, Timing};
use crate::request::Request;
use crate::stage::{Call, Next, Reply, Stage};
use crate::stages::{Dispatch, Ready, Record};

/// The kernel: spaces, caches, the audit log and the stages.
pub struct Kernel {
    spaces: Arc<Spaces>,
    host: Arc<Host>,
    caches: Caches,
    mode: Mode,
    audit: Arc<AuditLog>,
    launcher: Launcher,
    stages: Vec<Box<dyn Stage>>,
    /// What the configuration gave rise to say.
    notices: Vec<String>,
}

impl Kernel {
    /// A kernel over these spaces. This is the one place where stages are put in order.
    pub fn new(spaces: Arc<Spaces>, host: Host) -> Result<Self, Fault> {
        let host = Arc::new(host);
        let (config, notices) = spaces.config().map_err(|error| error.fault())?;
        let mode = match config.mode {
            kiwi_space::Mode::Strict => Mode::Strict,
            kiwi_space::Mode::Lenient => Mode::Lenient,
        };
        let audit = Arc::new(AuditLog::new(spaces.audit_dir().ok()));
        let launcher = Launcher::new(host.kiwi.clone(), host.scratch.clone());
        let stages: Vec<Box<dyn Stage>> = vec![
            Box::new(Ready { host: Arc::clone(&host) }),
            Box::new(Record { audit: Arc::clone(&audit) }),
            Box::new(Dispatch::new(Arc::clone(&host), &spaces, config, launcher.clone())),
        ];
        Ok(Self { spaces, host, caches: Caches::default(), mode, audit, launcher, stages, notices })
    }

    /// The spaces this kernel reads.
    pub fn spaces(&self) -> &Spaces {
        &self.spaces
    }

    /// Hits and misses of every cache, by name.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = self.caches.counters();
        counters.extend(self.spaces.counters());
        counters
    }

    /// Resolves, verifies, validates and merges, without any effect. A faulty chain is returned whole.
    pub fn plan(&self, tool: &ToolRef) -> Result<Plan, Fault> {
        kiwi_chain::plan(self.spaces.as_ref(), tool, self.mode, &self.caches).map_err(|error| error.fault())
    }

    /// The tool that is meant, whether or not its chain is sound.
    pub fn find(&self, tool: &ToolRef) -> Result<Arc<Tool>, Fault> {
        kiwi_chain::find(self.spaces.as_ref(), tool).map_err(|error| error.fault())
    }

    /// Gets the next call's launcher going while that call is still being planned. For a face that makes one call.
    pub fn start_ahead(&self) {
        self.launcher.start_ahead();
    }

    /// Makes a call. Whatever happens is in the outcome.
    pub async fn call(&self, request: Request) -> Outcome {
        let begun = Instant::now();
        let session = request.session.to_string();
        let plan = match self.plan(&request.tool) {
            Ok(plan) => plan,
            Err(fault) => return self.unplanned(&request, fault, begun),
        };
        let params = plan
            .require()
            .and_then(|()| plan.check_params(request.arguments.clone().read(plan.parameters())));
        let params = match params {
            Ok(params) => params,
            Err(error) => return self.unplanned(&request, error.fault(), begun).planned(&plan),
        };
        let plan_us = micros(begun);
        let gate_begun = Instant::now();
        let result = if request.dry_run {
            self.rehearse(&plan, &params)
        } else {
            Next::new(&self.stages).run(Call { request: &request, plan: &plan, params }).await
        };
        let execute =
            result.as_ref().map_or(0, |reply| u64::try_from(reply.took.as_micros()).unwrap_or(u64::MAX));
        let timing_us = Timing { plan: plan_us, gate: micros(gate_begun).saturating_sub(execute), execute };
        let (reply, error) = match result {
            Ok(mut reply) => {
                let failure = reply.failure.take();
                (reply, failure)
            }
            Err(fault) => (Reply::default(), Some(fault)),
        };
        let outcome = Outcome {
            status: error.as_ref().map_or(Status::Success, |fault| fault.kind.status()),
            tool: None,
            chain: Vec::new(),
            chain_hash: None,
            result: reply.result,
            stderr: reply.stderr,
            error,
            warnings: self.notices.iter().cloned().chain(plan.warnings()).collect(),
            session,
            timing_us,
        };
        outcome.planned(&plan)
    }

    /// What would happen, without it happening.
    fn rehearse(&self, plan: &Plan, params: &Map<String, Value>) -> Result<Reply, Fault> {
        let environment = |name: &str| self.host.environment.get(name).cloned();
        let invocation = invocation(plan, params, &environment).map_err(|error| error.fault())?;
        Ok(Reply { result: json!({"dry_run": true, "would": invocation.describe()}), ..Reply::default() })
    }

    /// A call that failed before its stages still leaves a record.
    fn unplanned(&self, request: &Request, fault: Fault, begun: Instant) -> Outcome {
        let entry = Entry {
            event: Event::Request,
            at: now(),
            session: request.session.to_string(),
            caller: request.caller.as_str().to_owned(),
            tool: request.tool.to_string(),
            version: None,
            integrity: None,
            chain_hash: None,
            chain: Vec::new(),
            params_hash: None,
            result: Some(CallResult {
                ok: false,
                kind: Some(fault.kind),
                duration_us: micros(begun),
                output_hash: None,
            }),
        };
        let mut warnings = Vec::new();
        if !request.dry_run
            && let Err(unrecorded) = self.audit.append(request.session, entry, Durability::Buffered)
        {
            // Nothing ran, so nothing is hidden by going on; but it must be said.
            warnings.push(unrecorded.message);
        }
        let timing = Timing { plan: micros(begun), ..Timing::default() };
        Outcome { warnings, ..Outcome::unplanned(request.session.to_string(), fault, timing) }
    }
}

fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}
