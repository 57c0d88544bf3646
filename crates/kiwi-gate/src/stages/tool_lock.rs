//! Admission, then the turn of the tool. What is denied here never reaches another stage.

use kiwi_model::record::{CallResult, Event};
use kiwi_model::{ErrorKind, Fault};
use kiwi_rules::Answer;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::record::entry;
use super::turns::Turns;
use crate::admission::{
    Admission, AdmissionNote, Admitted, Judge, Judged, Objection, OnDeny, ToolAdmissionDenied,
};
use crate::approvals::Approved;
use crate::audit::{AuditLog, Durability};
use crate::planner::Planner;
use crate::stage::{Call, Next, Reply, Stage, StageFuture};
use crate::vault::Vault;

/// A callback that takes longer is left to itself: the caller's denial does not wait for it.
const CALLBACK_PATIENCE: Duration = Duration::from_secs(2);

/// The first stage.
pub(crate) struct ToolLock {
    pub admission: Arc<Admission>,
    pub planner: Arc<Planner>,
    pub turns: Turns,
    pub audit: AuditLog,
    pub vault: Arc<Vault>,
    pub on_deny: Mutex<Option<OnDeny>>,
    /// Decisions so far.
    pub sequence: AtomicU64,
}

impl Stage for ToolLock {
    fn run<'a>(&'a self, call: Call<'a>, next: Next<'a>) -> StageFuture<'a> {
        Box::pin(async move {
            let mut judged = self.admission.judge(&call);
            let sequence = self.sequence.fetch_add(1, Ordering::Relaxed) + 1;
            let session = call.request.session;
            let counters = &self.admission.counters;
            let settled = match judged.answer() {
                Answer::Deny => Err(None),
                Answer::Ask | Answer::Allow => self.settle(&call, &judged).await.map_err(Some),
            };
            let approved = match settled {
                Ok(approved) => approved,
                Err(objection) => {
                    judged.objections.extend(objection.map(|objection| *objection));
                    let refused = Err(self.refuse(&call, &mut judged, sequence).await);
                    match judged.answer() {
                        Answer::Deny => counters.ended(session, &judged.counted, &refused),
                        Answer::Ask | Answer::Allow => counters.withdrawn(session, &judged.counted),
                    }
                    return refused;
                }
            };
            judged.counted.keep();
            let exclusive = call.plan().is_exclusive().then(|| call.plan().tools().first()).flatten();
            let _turn = match exclusive {
                Some(leaf) => Some(self.turns.take(&leaf.manifest.tool_id, &call.request.cancel).await?),
                None => None,
            };
            let note = Some(judged.note(sequence, approved));
            let admitted = Admitted { note, context: Arc::clone(&judged.context) };
            let result = next.run(Call { admitted: Some(admitted), ..call }).await;
            counters.ended(session, &judged.counted, &result);
            result.map(|reply| Reply { loop_notice: judged.counted.notice, ..reply })
        })
    }
}

impl ToolLock {
    /// What is left to do once every judge has spoken: a person's answer where one is asked for, then what rules want
    /// changed. Says who approved.
    async fn settle(&self, call: &Call<'_>, judged: &Judged) -> Result<Option<Approved>, Box<Objection>> {
        let mut approved = None;
        if judged.answer() == Answer::Ask {
            approved = Some(self.admission.approve(call, judged, &self.vault).await?);
            if call.request.on_ask.is_some() {
                self.require_the_same(call, judged)?;
            }
        }
        self.admission.state.apply(&judged.mutations)?;
        Ok(approved)
    }

    /// Time has passed while a person thought: what they approved must still be what would run.
    fn require_the_same(&self, call: &Call<'_>, judged: &Judged) -> Result<(), Box<Objection>> {
        let changed = |what: &str| {
            let why = format!("{what} changed while the call waited");
            let hint = "make the call again to ask again";
            Box::new(Objection::policy(Judge::Approval, "approval", why).with_hint(hint))
        };
        let now = self.planner.planned(&call.request.tool, call.request.lock);
        if now.map(|now| now.plan.chain_hash()).ok() != Some(call.plan().chain_hash()) {
            return Err(changed("the tool"));
        }
        let rules = self.admission.rulebook.read().ok();
        if rules.map(|rules| rules.version_hash()) != Some(judged.rules_version) {
            return Err(changed("the rules"));
        }
        Ok(())
    }

    /// The record first, then the callback, then the error.
    async fn refuse(&self, call: &Call<'_>, judged: &mut Judged, sequence: u64) -> Fault {
        let tool = call.plan().links().first().map(|link| link.tool_id.to_string()).unwrap_or_default();
        let caller = call.request.caller.as_str();
        let denied = ToolAdmissionDenied::from_objections(&judged.objections, caller, &tool);
        let mut fault = match &denied {
            Some(denied) => denied.fault(),
            None => judged.decisive().fault(),
        };
        let event = if denied.is_some() { Event::Denied } else { Event::Request };
        if let Err(unrecorded) = self.record(call, event, judged.note(sequence, None), fault.kind).await {
            fault.message =
                format!("{} (and this cannot be recorded: {})", fault.message, unrecorded.message);
        }
        let on_deny = self.on_deny.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let (Some(on_deny), Some(denied)) = (on_deny, denied) {
            tell(on_deny, denied).await;
        }
        fault
    }

    async fn record(
        &self,
        call: &Call<'_>,
        event: Event,
        note: AdmissionNote,
        kind: ErrorKind,
    ) -> Result<(), Fault> {
        let mut entry = entry(call, Some(note), &self.vault)?;
        entry.event = event;
        entry.result = Some(CallResult { ok: false, kind: Some(kind), duration_us: 0, output_hash: None });
        self.audit.append(call.request.session, entry, Durability::OnDisk).await?;
        call.trail.note();
        Ok(())
    }
}

/// Runs a callback on a thread of its own: it may panic or hang, and the denial stands.
async fn tell(on_deny: OnDeny, denied: ToolAdmissionDenied) {
    let (done, finished) = tokio::sync::oneshot::channel::<()>();
    let run = move || {
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| on_deny(&denied)));
        let _ = done.send(());
    };
    if std::thread::Builder::new().name("on-deny".into()).spawn(run).is_ok() {
        let _ = tokio::time::timeout(CALLBACK_PATIENCE, finished).await;
    }
}
