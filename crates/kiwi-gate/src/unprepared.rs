//! Calls that did not get as far as their stages, and what is written down about them.

use kiwi_model::record::{CallResult, ChainEntry, Event, Record};
use kiwi_model::{Digest, Fault, canonical_object};
use serde_json::{Map, Value};
use std::sync::Arc;

use crate::agreement::Planned;
use crate::audit::{Veiled, now, veil_unchecked};
use crate::redact::Redactor;
use crate::request::{Arguments, Request};
use crate::vault::Vault;

/// Why a call did not get as far as its stages, and what is known of it.
pub(crate) struct Unprepared {
    pub fault: Fault,
    /// What it means, where that can be told.
    pub planned: Option<Arc<Planned>>,
    /// Its parameters as they were given, where nobody has them but this.
    pub given: Option<Map<String, Value>>,
}

impl Unprepared {
    /// A call of which nobody can tell what it means.
    pub fn unplanned(fault: Fault, arguments: Arguments) -> Self {
        Self { fault, planned: None, given: Some(arguments.read(None)) }
    }

    /// Its record.
    pub fn entry(&self, request: &Request, vault: &Vault, duration_us: u64) -> Record {
        let plan = self.planned.as_ref().map(|planned| &planned.plan);
        let links = plan.map(kiwi_chain::Plan::links).unwrap_or_default();
        let leaf = links.first();
        let veiled = self.veiled(vault);
        Record {
            event: Event::Request,
            at: now(),
            session: request.session.to_string(),
            call: None,
            caller: request.caller.as_str().to_owned(),
            tool: leaf.map_or_else(|| request.tool.to_string(), |link| link.tool_id.to_string()),
            version: leaf.map(|link| link.version.clone()),
            integrity: leaf.map(|link| link.integrity),
            chain_hash: plan.map(kiwi_chain::Plan::chain_hash),
            chain: links.iter().map(ChainEntry::from).collect(),
            lockfile: self.planned.as_ref().and_then(|planned| planned.note()),
            params: veiled.params,
            redacted: veiled.redacted,
            params_hash: veiled.hash,
            decision: None,
            rules_version: None,
            permission: None,
            result: Some(CallResult {
                ok: false,
                kind: Some(self.fault.kind),
                duration_us,
                output_hash: None,
            }),
        }
    }

    /// The parameters without secrets. Without a tool nobody can say which of them are some: then only their digest.
    fn veiled(&self, vault: &Vault) -> Veiled {
        let Some(given) = &self.given else { return Veiled::default() };
        let known = self.planned.as_ref().and_then(|planned| {
            let secrets = vault.known(&planned.plan).ok()?;
            Some(veil_unchecked(given, planned.plan.parameters(), &Redactor::new(&secrets)))
        });
        known.unwrap_or_else(|| {
            let hash = canonical_object(given).ok().map(|text| Digest::of(text.as_bytes()));
            Veiled { hash, ..Veiled::default() }
        })
    }
}
