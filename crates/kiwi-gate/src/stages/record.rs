//! A durable record before the effect, and another after it, whatever happens in between.

use kiwi_model::record::{CallResult, ChainEntry, Event, Record as Entry};
use kiwi_model::{Digest, ErrorKind, Fault, canonical};
use serde_json::Value;
use std::sync::Arc;

use crate::audit::{AuditLog, Durability};
use crate::request::Request;
use crate::stage::{Call, Next, Reply, Stage, StageFuture};

/// Writes the enter and the exit record.
pub(crate) struct Record {
    pub audit: Arc<AuditLog>,
}

impl Stage for Record {
    fn run<'a>(&'a self, call: Call<'a>, next: Next<'a>) -> StageFuture<'a> {
        Box::pin(async move {
            let entry = entry(call.request, &call);
            self.audit.append(call.request.session, entry.clone(), Durability::OnDisk)?;
            call.trail.note();
            let mut exit = Exit {
                audit: &self.audit,
                request: call.request,
                entry: Some(entry),
                begun: std::time::Instant::now(),
            };
            let result = next.run(call).await;
            exit.write(&result);
            result
        })
    }
}

/// Writes the exit record, also when the call is dropped or panics on its way.
struct Exit<'a> {
    audit: &'a AuditLog,
    request: &'a Request,
    entry: Option<Entry>,
    begun: std::time::Instant,
}

impl Exit<'_> {
    fn write(&mut self, result: &Result<Reply, Fault>) {
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
        self.finish(outcome);
    }

    fn finish(&mut self, outcome: CallResult) {
        if let Some(mut entry) = self.entry.take() {
            entry.event = Event::Exit;
            entry.at = crate::audit::now();
            entry.result = Some(outcome);
            // The effect has happened: an exit record that cannot be written leaves an open enter record behind, which
            // is what an auditor must see.
            let _ = self.audit.append(self.request.session, entry, Durability::Buffered);
        }
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

impl Drop for Exit<'_> {
    fn drop(&mut self) {
        let duration_us = self.elapsed();
        self.finish(CallResult {
            ok: false,
            kind: Some(ErrorKind::Internal),
            duration_us,
            output_hash: None,
        });
    }
}

/// What a record says of a call before its effect.
pub(super) fn entry(request: &Request, call: &Call<'_>) -> Entry {
    let leaf = call.plan().links().first();
    Entry {
        event: Event::Enter,
        at: crate::audit::now(),
        session: request.session.to_string(),
        caller: request.caller.as_str().to_owned(),
        tool: leaf.map_or_else(|| request.tool.to_string(), |link| link.tool_id.to_string()),
        version: leaf.map(|link| link.version.clone()),
        integrity: leaf.map(|link| link.integrity),
        chain_hash: Some(call.plan().chain_hash()),
        chain: call.plan().links().iter().map(ChainEntry::from).collect(),
        lockfile: call.planned.note(),
        params: None,
        redacted: Vec::new(),
        params_hash: hash(&Value::Object(call.params.clone())),
        decision: call.admitted.as_ref().map(|admitted| admitted.decision.clone()),
        rules_version: call.admitted.as_ref().map(|admitted| admitted.rules_version),
        permission: call.admitted.as_ref().map(|admitted| admitted.permission.clone()),
        result: None,
    }
}

fn hash(value: &Value) -> Option<Digest> {
    canonical(value).ok().map(|text| Digest::of(text.as_bytes()))
}
