//! Admission, then the turn of the tool. What is denied here never reaches another stage.

use kiwi_model::record::{CallResult, Event};
use kiwi_model::{ErrorKind, Fault};
use kiwi_rules::Answer;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::record::entry;
use super::turns::Turns;
use crate::admission::{Admission, Admitted, Judged, OnDeny, ToolAdmissionDenied};
use crate::audit::{AuditLog, Durability};
use crate::stage::{Call, Next, Reply, Stage, StageFuture};
use crate::vault::Vault;

/// A callback that takes longer is left to itself: the caller's denial does not wait for it.
const CALLBACK_PATIENCE: Duration = Duration::from_secs(2);

/// The first stage.
pub(crate) struct ToolLock {
    pub admission: Arc<Admission>,
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
            if judged.answer() != Answer::Deny
                && let Err(objection) = self.admission.state.apply(&judged.mutations)
            {
                judged.objections.push(objection);
            }
            if judged.answer() == Answer::Deny {
                let fault = self.deny(&call, &judged, sequence).await;
                let result = Err(fault);
                self.admission.counters.ended(session, &judged.counted, &result);
                return result;
            }
            judged.counted.keep();
            let exclusive = call.plan().is_exclusive().then(|| call.plan().tools().first()).flatten();
            let _turn = match exclusive {
                Some(leaf) => Some(self.turns.take(&leaf.manifest.tool_id, &call.request.cancel).await?),
                None => None,
            };
            let admitted = Some(judged.note(sequence, None));
            let result = next.run(Call { admitted, ..call }).await;
            self.admission.counters.ended(session, &judged.counted, &result);
            result.map(|reply| Reply { loop_notice: judged.counted.notice, ..reply })
        })
    }
}

impl ToolLock {
    /// The record first, then the callback, then the error.
    async fn deny(&self, call: &Call<'_>, judged: &Judged, sequence: u64) -> Fault {
        let tool = call.plan().links().first().map(|link| link.tool_id.to_string()).unwrap_or_default();
        let caller = call.request.caller.as_str();
        let Some(denied) = ToolAdmissionDenied::from_objections(&judged.objections, caller, &tool) else {
            return Fault::new(ErrorKind::Internal, "a call was denied without a reason");
        };
        let mut fault = denied.fault();
        if let Err(unrecorded) = self.record(call, judged.note(sequence, None), fault.kind).await {
            fault.message =
                format!("{} (and the denial cannot be recorded: {})", fault.message, unrecorded.message);
        }
        let on_deny = self.on_deny.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(on_deny) = on_deny {
            tell(on_deny, denied).await;
        }
        fault
    }

    async fn record(&self, call: &Call<'_>, admitted: Admitted, kind: ErrorKind) -> Result<(), Fault> {
        let mut entry = entry(call, &self.vault)?;
        entry.event = Event::Denied;
        entry.decision = Some(admitted.decision);
        entry.rules_version = Some(admitted.rules_version);
        entry.permission = Some(admitted.permission);
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
