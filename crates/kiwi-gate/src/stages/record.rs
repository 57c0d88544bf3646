//! A durable record before the effect, and another after it, whatever happens in between.

use kiwi_model::record::{CallResult, ChainEntry, Event, Record as Entry};
use kiwi_model::{Digest, ErrorKind, Fault, canonical};
use serde_json::Value;
use std::sync::Arc;
use std::time::Instant;

use crate::admission::AdmissionNote;
use crate::audit::{AuditLog, Durability, veil};
use crate::redact::Redactor;
use crate::request::Session;
use crate::stage::{Call, Next, Reply, Stage, StageFuture};
use crate::vault::Vault;

/// Writes the enter and the exit record.
pub(crate) struct Record {
    pub audit: AuditLog,
    pub vault: Arc<Vault>,
}

impl Stage for Record {
    fn run<'a>(&'a self, mut call: Call<'a>, next: Next<'a>) -> StageFuture<'a> {
        Box::pin(async move {
            let _attending = self.audit.attend();
            let note = call.admitted.as_mut().and_then(|admitted| admitted.note.take());
            let entry = Arc::new(entry(&call, note, &self.vault)?);
            let session = call.request.session;
            // Made first: a call that is given up while it waits for its enter record has an exit record too.
            let mut exit =
                Exit { audit: &self.audit, session, entry: Some(Arc::clone(&entry)), begun: Instant::now() };
            if let Err(fault) = self.audit.append(session, entry, Durability::OnDisk).await {
                exit.entry = None;
                return Err(fault);
            }
            call.trail.note();
            exit.begun = Instant::now();
            let result = next.run(call).await;
            exit.write(&result).await;
            result
        })
    }
}

/// What a record says of a call before its effect. Parameters are there without secrets.
pub(super) fn entry(call: &Call<'_>, note: Option<AdmissionNote>, vault: &Vault) -> Result<Entry, Fault> {
    let request = call.request;
    let leaf = call.plan().links().first();
    let known = Redactor::new(&vault.known(call.plan())?);
    let veiled = veil(&call.params, call.plan().parameters(), &known);
    let (decision, rules_version, permission) = match note {
        Some(note) => (Some(note.decision), Some(note.rules_version), Some(note.permission)),
        None => (None, None, None),
    };
    Ok(Entry {
        event: Event::Enter,
        at: crate::audit::now(),
        session: request.session.to_string(),
        call: Some(uuid::Uuid::now_v7().to_string()),
        caller: request.caller.as_str().to_owned(),
        tool: leaf.map_or_else(|| request.tool.to_string(), |link| link.tool_id.to_string()),
        version: leaf.map(|link| link.version.clone()),
        integrity: leaf.map(|link| link.integrity),
        chain_hash: Some(call.plan().chain_hash()),
        chain: call.plan().links().iter().map(ChainEntry::from).collect(),
        lockfile: call.planned.note(),
        params: veiled.params,
        redacted: veiled.redacted,
        params_hash: veiled.hash,
        decision,
        rules_version,
        permission,
        result: None,
    })
}

/// Writes the exit record, also when the call is dropped or panics on its way.
struct Exit<'a> {
    audit: &'a AuditLog,
    session: Session,
    entry: Option<Arc<Entry>>,
    begun: Instant,
}

impl Exit<'_> {
    async fn write(&mut self, result: &Result<Reply, Fault>) {
        let outcome = match result {
            Ok(Reply { failure: None, result, .. }) => {
                CallResult { ok: true, kind: None, duration_us: self.elapsed(), output_hash: hash(result) }
            }
            Ok(Reply { failure: Some(fault), result, .. }) => CallResult {
                ok: false,
                kind: Some(fault.kind),
                duration_us: self.elapsed(),
                output_hash: hash(result),
            },
            Err(fault) => CallResult {
                ok: false,
                kind: Some(fault.kind),
                duration_us: self.elapsed(),
                output_hash: None,
            },
        };
        // The effect has happened: an exit record that cannot be written leaves an open enter record behind, which is
        // what an auditor must see.
        if let Some(entry) = self.finished(outcome) {
            let _ = self.audit.append(self.session, entry, Durability::OnDisk).await;
        }
    }

    fn finished(&mut self, outcome: CallResult) -> Option<Arc<Entry>> {
        let entry = Arc::unwrap_or_clone(self.entry.take()?);
        Some(Arc::new(Entry { event: Event::Exit, at: crate::audit::now(), result: Some(outcome), ..entry }))
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

impl Drop for Exit<'_> {
    fn drop(&mut self) {
        let duration_us = self.elapsed();
        let outcome =
            CallResult { ok: false, kind: Some(ErrorKind::Internal), duration_us, output_hash: None };
        if let Some(entry) = self.finished(outcome) {
            self.audit.append_now(self.session, entry);
        }
    }
}

fn hash(value: &Value) -> Option<Digest> {
    canonical(value).ok().map(|text| Digest::of(text.as_bytes()))
}
