//! The path of a call, start to end.

use kiwi_chain::{Caches, Mode, Plan, Tool, invocation};
use kiwi_exec::{Launcher, Limits};
use kiwi_model::lockfile::LockMode;
use kiwi_model::record::{CallResult, Event, Record as Entry};
use kiwi_model::{Digest, Explain, Fault, Status, ToolRef, canonical};
use kiwi_space::Spaces;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Instant;

use crate::agreement::Planned;
use crate::audit::{AuditLog, Durability, now};
use crate::host::Host;
use crate::keyring;
use crate::outcome::{Outcome, Timing};
use crate::planner::Planner;
use crate::prepare::Preparer;
use crate::request::Request;
use crate::stage::{Call, Next, Reply, Stage};
use crate::stages::{Dispatch, Ready, Record, client};
use crate::vault::Vault;

/// The kernel: spaces, plans, the audit log and the stages.
pub struct Kernel {
    pub(crate) planner: Planner,
    pub(crate) preparer: Arc<Preparer>,
    pub(crate) vault: Arc<Vault>,
    pub(crate) host: Arc<Host>,
    audit: Arc<AuditLog>,
    pub(crate) launcher: Launcher,
    stages: Vec<Box<dyn Stage>>,
    /// What the configuration gave rise to say.
    notices: Vec<String>,
}

impl Kernel {
    /// A kernel over these spaces. This is the one place where stages are put in order.
    pub fn new(spaces: Arc<Spaces>, host: Host) -> Result<Self, Fault> {
        let host = Arc::new(host);
        let (config, notices) = spaces.config().map_err(|error| error.fault())?;
        let audit = Arc::new(AuditLog::new(spaces.audit_dir().ok()));
        let launcher = Launcher::new(host.kiwi.clone(), host.scratch.clone());
        let config = Arc::new(config);
        let preparer =
            Arc::new(Preparer::new(Arc::clone(&host), &spaces, Arc::clone(&config), launcher.clone()));
        let http = Arc::new(client(&host));
        let keeper = keyring::keeper(&host, config.keyring);
        let vault = Arc::new(Vault { spaces: Arc::clone(&spaces), http: Arc::clone(&http), keeper });
        let stages: Vec<Box<dyn Stage>> = vec![
            Box::new(Ready { host: Arc::clone(&host), vault: Arc::clone(&vault) }),
            Box::new(Record { audit: Arc::clone(&audit) }),
            Box::new(Dispatch::new(
                Arc::clone(&host),
                &spaces,
                Arc::clone(&config),
                launcher.clone(),
                Arc::clone(&preparer),
                http,
                Arc::clone(&vault),
            )),
        ];
        let planner = Planner {
            spaces,
            caches: Caches::default(),
            validation: match config.mode {
                kiwi_space::Mode::Strict => Mode::Strict,
                kiwi_space::Mode::Lenient => Mode::Lenient,
            },
            lock_mode: config.lock_mode,
            unattended: host.is_unattended(),
        };
        Ok(Self { planner, preparer, vault, host, audit, launcher, stages, notices })
    }

    /// The spaces this kernel reads.
    pub fn spaces(&self) -> &Spaces {
        &self.planner.spaces
    }

    /// Hits and misses of every cache, by name.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = self.planner.caches.counters();
        counters.extend(self.spaces().counters());
        counters
    }

    /// What a call would run and what was agreed about it, without any effect. A faulty chain is returned whole.
    pub fn planned(&self, tool: &ToolRef, lock: Option<LockMode>) -> Result<Planned, Fault> {
        self.planner.planned(tool, lock)
    }

    /// What a call would run.
    pub fn plan(&self, tool: &ToolRef) -> Result<Plan, Fault> {
        self.planned(tool, None).map(|planned| planned.plan)
    }

    /// The tool that is meant, whether or not its chain is sound.
    pub fn find(&self, tool: &ToolRef) -> Result<Arc<Tool>, Fault> {
        kiwi_chain::find(self.planner.spaces.as_ref(), tool).map_err(|error| error.fault())
    }

    /// What builds the walls of sandboxes here, and what limits of whole calls are held by; each found out by trying.
    pub async fn walls(&self) -> [(&'static str, Result<&'static str, Fault>); 2] {
        let sandbox = self.launcher.sandbox(self.host.search_path()).await;
        let limits = Limits { memory: Some(1 << 28), pids: Some(64), ..Limits::default() };
        let limits = self.launcher.holds(limits).await.map(|()| "memory and processes, by control groups");
        [
            ("sandbox", sandbox.map_err(|error| error.fault())),
            ("limits", limits.map_err(|error| error.fault())),
        ]
    }

    /// Gets the next call's launcher going while that call is still being planned. For a face that makes one call.
    pub fn start_ahead(&self) {
        self.launcher.start_ahead();
    }

    /// Makes a call. Whatever happens is in the outcome.
    pub async fn call(&self, request: Request) -> Outcome {
        let begun = Instant::now();
        let session = request.session.to_string();
        let planned = match self.planned(&request.tool, request.lock) {
            Ok(planned) => planned,
            Err(fault) => return self.unplanned(&request, fault, begun),
        };
        let plan = &planned.plan;
        let params = planned.require().and_then(|()| {
            let params = request.arguments.clone().read(plan.parameters());
            plan.check_params(params).map_err(|error| error.fault())
        });
        let params = match params {
            Ok(params) => params,
            Err(fault) => return self.unplanned(&request, fault, begun).planned(plan),
        };
        let plan_us = micros(begun);
        let gate_begun = Instant::now();
        let result = if request.dry_run {
            self.rehearse(plan, &params)
        } else {
            if let Some(lock) = planned.lock.as_ref().filter(|lock| lock.differences.is_empty()) {
                self.spaces().locks().touch(&lock.stored, jiff::Timestamp::now().into());
            }
            Next::new(&self.stages).run(Call { request: &request, planned: &planned, params }).await
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
            warnings: self.notices.iter().cloned().chain(planned.warnings()).chain(reply.warnings).collect(),
            session,
            timing_us,
        };
        outcome.planned(plan)
    }

    /// What would happen, without it happening.
    fn rehearse(&self, plan: &Plan, params: &Map<String, Value>) -> Result<Reply, Fault> {
        let symbolic = |name: &str| self.host.environment.contains_key(name).then(|| Host::symbol(name));
        let would = invocation(plan, params, &symbolic).map_err(|error| error.fault())?.describe();
        let hash = canonical(&would).ok().map(|text| Digest::of(text.as_bytes()));
        let result = json!({"dry_run": true, "would": would, "hash": hash});
        Ok(Reply { result, ..Reply::default() })
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
            lockfile: None,
            params: None,
            redacted: Vec::new(),
            params_hash: None,
            decision: None,
            rules_version: None,
            permission: None,
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
