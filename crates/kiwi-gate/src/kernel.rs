//! The path of a call, start to end.

use kiwi_chain::{Caches, Mode, Plan, Tool, invocation};
use kiwi_exec::{ExecError, Launcher, Limits};
use kiwi_mcp::Upstreams;
use kiwi_model::lockfile::LockMode;
use kiwi_model::{Digest, ErrorKind, Explain, Fault, Isolation, Status, ToolRef, canonical};
use kiwi_rules::DenialReason;
use kiwi_space::{Config, Profile, Spaces, Transport, UnknownProfile};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Instant;

use crate::admission::{Admission, OnDeny, complete_denial};
use crate::agreement::Planned;
use crate::audit::{AuditLog, Durability, Place};
use crate::catalogue::Catalogue;
use crate::finding::Finder;
use crate::host::Host;
use crate::keyring;
use crate::outcome::{Outcome, Timing};
use crate::planner::Planner;
use crate::prepare::Preparer;
use crate::remembered::Remembered;
use crate::request::{Arguments, Request};
use crate::stage::{Call, Next, Reply, Stage, StageFuture, Trail};
use crate::stages::{Dispatch, Ready, Record, ToolLock, Turns, client};
use crate::unprepared::Unprepared;
use crate::upstream;
use crate::vault::Vault;

/// The kernel: spaces, plans, the audit log and the stages.
pub struct Kernel {
    pub(crate) planner: Arc<Planner>,
    pub(crate) preparer: Arc<Preparer>,
    pub(crate) vault: Arc<Vault>,
    pub(crate) host: Arc<Host>,
    audit: AuditLog,
    pub(crate) launcher: Launcher,
    pub(crate) config: Arc<Config>,
    /// What the configuration gives those who come in some way, and of them those who ask for less.
    profiles: Mutex<HashMap<Way, Arc<Profile>>>,
    pub(crate) admission: Arc<Admission>,
    tool_lock: Arc<ToolLock>,
    pub(crate) stages: Vec<Box<dyn Stage>>,
    pub(crate) finder: Arc<Finder>,
    /// What the configuration gave rise to say.
    pub(crate) notices: Vec<String>,
}

/// How a call comes in, and the narrower profile it asks for.
type Way = (Transport, Option<String>);

impl Kernel {
    /// A kernel over these spaces. This is the one place where stages are put in order.
    pub fn new(spaces: Arc<Spaces>, host: Host) -> Result<Self, Fault> {
        let host = Arc::new(host);
        // First: what changes in between is a change.
        let began_with = spaces.project_config().map_err(|error| error.to_string());
        let (config, notices) = spaces.config().map_err(|error| error.fault())?;
        let audit = AuditLog::new(Place::of(&spaces, config.anchor.clone()));
        let launcher = Launcher::new(host.kiwi.clone(), host.scratch.clone())
            .by(host.launcher.clone())
            .remembering(Preparer::cache(&spaces).map(|cache| cache.join("sandboxes")));
        let config = Arc::new(config);
        let preparer =
            Arc::new(Preparer::new(Arc::clone(&host), &spaces, Arc::clone(&config), launcher.clone()));
        let http = Arc::new(client(&host));
        let keeper = keyring::keeper(&host, config.keyring);
        let vault = Arc::new(Vault { spaces: Arc::clone(&spaces), http: Arc::clone(&http), keeper });
        let admission = Arc::new(Admission::new(Arc::clone(&spaces), Arc::clone(&host), &config, began_with));
        let upstreams = upstream::servers(&spaces, &host, &preparer, &http, &vault);
        let catalogue = Catalogue {
            spaces: Arc::clone(&spaces),
            upstreams: Arc::clone(&upstreams),
            signed: config.require_signature.clone(),
        };
        let finder = Arc::new(Finder::new(&catalogue, &admission, &host, &config));
        let planner = Arc::new(Planner {
            catalogue,
            caches: Caches::default(),
            validation: match config.mode {
                kiwi_space::Mode::Strict => Mode::Strict,
                kiwi_space::Mode::Lenient => Mode::Lenient,
            },
            lock_mode: config.lock_mode,
            unattended: host.is_unattended(),
            remembered: Remembered::default(),
        });
        let turns = Turns::new(&spaces);
        let dispatch = Dispatch {
            planner: Arc::clone(&planner),
            project: spaces.project_root().unwrap_or(&host.cwd).to_path_buf(),
            host: Arc::clone(&host),
            launcher: launcher.clone(),
            http,
            vault: Arc::clone(&vault),
            preparer: Arc::clone(&preparer),
            config: Arc::clone(&config),
            upstreams,
            spaces,
        };
        let tool_lock = Arc::new(ToolLock {
            planner: Arc::clone(&planner),
            admission: Arc::clone(&admission),
            turns,
            audit: audit.clone(),
            vault: Arc::clone(&vault),
            on_deny: Mutex::default(),
            sequence: AtomicU64::new(0),
        });
        let stages: Vec<Box<dyn Stage>> = vec![
            Box::new(Arc::clone(&tool_lock)),
            Box::new(Ready { host: Arc::clone(&host), vault: Arc::clone(&vault) }),
            Box::new(Record { audit: audit.clone(), vault: Arc::clone(&vault) }),
            Box::new(dispatch),
        ];
        Ok(Self {
            planner,
            preparer,
            vault,
            host,
            audit,
            launcher,
            config,
            profiles: Mutex::default(),
            admission,
            tool_lock,
            stages,
            finder,
            notices,
        })
    }

    /// Has every denial told to somebody, after it was recorded.
    pub fn on_deny(&self, callback: OnDeny) {
        *self.tool_lock.on_deny.lock().unwrap_or_else(PoisonError::into_inner) = Some(callback);
    }

    /// Puts a stage of a face's own between admission and the enter record.
    #[must_use]
    pub fn guarded_by(mut self, stage: Box<dyn Stage>) -> Self {
        self.stages.insert(1, stage);
        self
    }

    /// The spaces this kernel reads.
    pub fn spaces(&self) -> &Spaces {
        self.planner.spaces()
    }

    /// Hits and misses of every cache, by name.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = self.planner.caches.counters();
        counters.extend(self.spaces().counters());
        counters.push(("audit_sync_us", self.audit.waited_us()));
        counters
    }

    /// What a call would run and what was agreed about it, without any effect. A faulty chain is returned whole.
    pub fn planned(&self, tool: &ToolRef, lock: Option<LockMode>) -> Result<Arc<Planned>, Fault> {
        self.planner.planned(tool, lock)
    }

    /// The same, held against all of its lockfile that can be compared without installing anything.
    pub async fn looked_over(&self, tool: &ToolRef, lock: Option<LockMode>) -> Result<Arc<Planned>, Fault> {
        Ok(self.preparer.looked_over(self.planned(tool, lock)?).await)
    }

    /// What a call would run.
    pub fn plan(&self, tool: &ToolRef) -> Result<Plan, Fault> {
        self.planned(tool, None).map(|planned| planned.plan.clone())
    }

    /// The tool that is meant, whether or not its chain is sound.
    pub fn find(&self, tool: &ToolRef) -> Result<Arc<Tool>, Fault> {
        kiwi_chain::find(&self.planner.catalogue, tool).map_err(|error| error.fault())
    }

    /// What builds the walls of sandboxes here, and what limits of whole calls are held by; each found out by trying.
    pub async fn walls(&self) -> [(&'static str, Result<&'static str, Fault>); 2] {
        let sandbox = self.launcher.sandbox(self.host.search_path(), &self.preparer.walls()).await;
        let limits = Limits { memory: Some(1 << 28), pids: Some(64), ..Limits::default() };
        let limits = self.launcher.holds(limits).await.map(|()| "memory and processes, by control groups");
        [
            ("sandbox", sandbox.map_err(|error| error.fault())),
            ("limits", limits.map_err(|error| error.fault())),
        ]
    }

    /// Gets a call's launcher going while that call is still being planned. For a face that makes one call.
    pub fn start_ahead(&self, request: &Request) {
        let asked = request.isolation.unwrap_or(Isolation::Standard);
        self.launcher.start_ahead(asked, &self.preparer.walls(), self.host.search_path());
    }

    /// Launchers wait, and sandboxes are built, ahead of the calls they are for. For a face that stays.
    pub fn keep_spares(&self) {
        self.launcher.keep_spares();
    }

    /// The upstream servers.
    pub fn upstreams(&self) -> &Arc<Upstreams> {
        &self.planner.catalogue.upstreams
    }

    /// Makes a call. Whatever happens is in the outcome.
    pub async fn call(&self, mut request: Request) -> Outcome {
        let begun = Instant::now();
        if let Err(error) = self.upstreams().ensure(&request.tool.id).await {
            let unknown = Unprepared::unplanned(upstream::fault(&error), request.arguments.clone());
            return self.unplanned(&request, unknown, begun).await;
        }
        let arguments = std::mem::take(&mut request.arguments);
        let Prepared { planned, params } = match self.judged(&request, arguments).await {
            Ok(prepared) => prepared,
            Err(unprepared) => return self.unplanned(&request, *unprepared, begun).await,
        };
        let plan = &planned.plan;
        let plan_us = micros(begun);
        let gate_begun = Instant::now();
        let trail = Trail::default();
        let result = if request.dry_run {
            self.rehearse(plan, &params)
        } else {
            self.pass(&request, &planned, params, &trail).await
        };
        let execute =
            result.as_ref().map_or(0, |reply| u64::try_from(reply.took.as_micros()).unwrap_or(u64::MAX));
        let timing_us = Timing { plan: plan_us, gate: micros(gate_begun).saturating_sub(execute), execute };
        let (reply, error) = match result {
            Ok(mut reply) => {
                let failure = reply.failure.take();
                (reply, failure)
            }
            // Refused between two records, or by nobody's will: it leaves one all the same.
            Err(fault) if !trail.has_record() && !request.dry_run => {
                let unprepared = Unprepared { fault, planned: Some(planned), given: None };
                return self.unplanned(&request, unprepared, begun).await;
            }
            Err(fault) => (Reply::default(), Some(fault)),
        };
        let error = error.map(|fault| completed(fault, &request, Some(plan)));
        if error.is_none() && !request.dry_run {
            self.note_use(request.session, request.tool.id.as_str());
        }
        let outcome = Outcome {
            status: error.as_ref().map_or(Status::Success, |fault| fault.kind.status()),
            tool: None,
            chain: Vec::new(),
            chain_hash: None,
            result: reply.result,
            content: reply.content,
            stderr: reply.stderr,
            error,
            warnings: self.notices.iter().cloned().chain(planned.warnings()).chain(reply.warnings).collect(),
            loop_notice: reply.loop_notice,
            session: request.session.to_string(),
            timing_us,
        };
        outcome.planned(plan)
    }

    /// What a call runs and with what, held against all of its lockfile; or why it does not.
    async fn judged(&self, request: &Request, arguments: Arguments) -> Result<Prepared, Box<Unprepared>> {
        let planned = match self.planned(&request.tool, request.lock) {
            Ok(planned) => planned,
            Err(fault) => return Err(Unprepared::unplanned(fault, arguments).into()),
        };
        let completed = tokio::select! {
            completed = self.preparer.completed(planned) => completed,
            () = request.cancel.fired() => {
                return Err(Unprepared::unplanned(ExecError::Cancelled.fault(), arguments).into());
            }
        };
        Self::checked(completed, arguments)
    }

    /// What a call would run and with what, or why it cannot be told.
    pub(crate) fn prepared(
        &self,
        request: &Request,
        arguments: Arguments,
    ) -> Result<Prepared, Box<Unprepared>> {
        match self.planned(&request.tool, request.lock) {
            Ok(planned) => Self::checked(planned, arguments),
            Err(fault) => Err(Unprepared::unplanned(fault, arguments).into()),
        }
    }

    fn checked(planned: Arc<Planned>, arguments: Arguments) -> Result<Prepared, Box<Unprepared>> {
        let given = arguments.read(planned.plan.parameters());
        let params = planned
            .require()
            .and_then(|()| planned.plan.check_params(given.clone()).map_err(|error| error.fault()));
        match params {
            Ok(params) => Ok(Prepared { planned, params }),
            Err(fault) => Err(Box::new(Unprepared { fault, planned: Some(planned), given: Some(given) })),
        }
    }

    /// Through the stages. A stage that panics has refused.
    async fn pass(
        &self,
        request: &Request,
        planned: &Planned,
        params: Map<String, Value>,
        trail: &Trail,
    ) -> Result<Reply, Fault> {
        if let Some(lock) = planned.lock.as_ref().filter(|lock| lock.differences.is_empty()) {
            self.spaces().locks().touch(&lock.stored, jiff::Timestamp::now().into());
        }
        let profile = self.profile(request)?;
        let call = Call { request, planned, params, profile: &profile, admitted: None, trail };
        contained(Next::new(&self.stages).run(call)).await
    }

    /// The profile that a request has by the way it came in.
    pub(crate) fn profile(&self, request: &Request) -> Result<Arc<Profile>, Fault> {
        let mut profile = self.profile_of(request.transport, request.narrower.as_deref())?;
        if !request.permissions.is_empty() {
            Arc::make_mut(&mut profile).layers.extend(request.permissions.iter().flatten().cloned());
        }
        Ok(profile)
    }

    /// The profile of those who come in some way, and of them those who ask for less.
    pub(crate) fn profile_of(
        &self,
        transport: Transport,
        narrower: Option<&str>,
    ) -> Result<Arc<Profile>, Fault> {
        let key = (transport, narrower.map(str::to_owned));
        let mut profiles = self.profiles.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = profiles.get(&key) {
            return Ok(Arc::clone(known));
        }
        let profile = self.config.profile(transport, self.host.is_unattended(), narrower);
        let profile = Arc::new(profile.map_err(|unknown| unknown_profile(&unknown))?);
        profiles.insert(key, Arc::clone(&profile));
        Ok(profile)
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
    async fn unplanned(&self, request: &Request, unprepared: Unprepared, begun: Instant) -> Outcome {
        let entry = unprepared.entry(request, &self.vault, micros(begun));
        let Unprepared { fault, planned, .. } = unprepared;
        let plan = planned.as_ref().map(|planned| &planned.plan);
        let mut warnings = Vec::new();
        if !request.dry_run
            && let Err(unrecorded) = self.audit.append(request.session, entry, Durability::Buffered).await
            && unrecorded.message != fault.message
        {
            // Nothing ran, so nothing is hidden by going on; but it must be said.
            warnings.push(unrecorded.message);
        }
        let timing = Timing { plan: micros(begun), ..Timing::default() };
        let fault = completed(fault, request, plan);
        let outcome = Outcome { warnings, ..Outcome::unplanned(request.session.to_string(), fault, timing) };
        plan.into_iter().fold(outcome, Outcome::planned)
    }
}

/// A call that can go through the stages.
pub(crate) struct Prepared {
    pub planned: Arc<Planned>,
    /// Parameters, completed with defaults and checked.
    pub params: Map<String, Value>,
}

/// A failure as the call gives it: a denial says why, to whom and about what, wherever it came from.
fn completed(fault: Fault, request: &Request, plan: Option<&Plan>) -> Fault {
    let leaf = plan.and_then(|plan| plan.links().first());
    let tool = leaf.map_or_else(|| request.tool.id.to_string(), |link| link.tool_id.to_string());
    complete_denial(fault, request.caller.as_str(), &tool)
}

fn unknown_profile(unknown: &UnknownProfile) -> Fault {
    let reason = DenialReason::Policy { policy_id: "permission".into(), policy_reason: unknown.to_string() };
    Fault::new(ErrorKind::Denied, unknown.to_string())
        .with_hint(format!("there are: {}", unknown.known.join(", ")))
        .with_details(json!({ "reason": reason }))
}

/// Polls a future; a panic on the way is a failure like any other, and everything behind it did not happen.
async fn contained(mut stages: StageFuture<'_>) -> Result<Reply, Fault> {
    std::future::poll_fn(move |context| {
        let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| stages.as_mut().poll(context)));
        polled.unwrap_or_else(|_| {
            let fault = Fault::new(ErrorKind::Internal, "a stage of the gate failed; the call was stopped")
                .with_hint("this is a defect of Kiwi; what it printed above says where");
            Poll::Ready(Err(fault))
        })
    })
    .await
}

fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}
