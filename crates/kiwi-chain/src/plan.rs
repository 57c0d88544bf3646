//! A plan: a chain that was resolved, verified, validated and merged.

use jsonschema::Validator;
use kiwi_model::yaml::Place;
use kiwi_model::{Digest, Isolation, Link, ManifestError, Space, ToolRef, chain_hash};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::catalog::{Catalog, Identity, Tool};
use crate::error::{ChainError, Mismatch};
use crate::lock::Pins;
use crate::merge::{Merged, merge};
use crate::params;
use crate::resolve::resolve;
use crate::schema::Caches;
use crate::slips::slips;
use crate::upstream::{UpstreamAction, UpstreamCall};
use crate::validate::{Mode, Report, link_key, validate};
use crate::verify::verify;

/// What planning knows about a chain of given contents. Computed once per content.
#[derive(Debug)]
pub(crate) struct Prepared {
    links: Vec<Link>,
    chain_hash: Digest,
    report: Report,
    merged: Result<Merged, ChainError>,
    slips: Vec<String>,
    parameters: Option<Result<Arc<Validator>, Arc<str>>>,
}

/// A resolved chain and everything that is known about it. [`Plan::require`] tells whether it may run.
#[derive(Debug, Clone)]
pub struct Plan {
    tools: Vec<Arc<Tool>>,
    prepared: Arc<Prepared>,
    mismatches: Vec<Mismatch>,
}

/// Resolves, verifies, validates and merges. A chain with faults is still returned, so that it can be shown whole.
pub fn plan(
    catalog: &dyn Catalog,
    ask: &ToolRef,
    pins: &Pins,
    mode: Mode,
    caches: &Caches,
) -> Result<Plan, ChainError> {
    let tools = resolve(catalog, ask, pins)?;
    let mismatches = tools.iter().filter_map(|tool| verify(tool).err()).collect();
    let key = (tools.iter().map(|tool| link_key(tool)).collect::<Vec<_>>(), mode == Mode::Strict);
    let prepared = caches.chains.get(&key).unwrap_or_else(|| {
        let prepared = Arc::new(prepare(&tools, mode, caches));
        caches.chains.insert(key, Arc::clone(&prepared));
        prepared
    });
    Ok(Plan { tools, prepared, mismatches })
}

fn prepare(tools: &[Arc<Tool>], mode: Mode, caches: &Caches) -> Prepared {
    let links: Vec<Link> = tools.iter().map(|tool| tool.link()).collect();
    Prepared {
        chain_hash: chain_hash(&links),
        links,
        report: judge(tools, mode, caches),
        merged: merge(tools, caches),
        slips: slips(tools),
        parameters: tools
            .first()
            .and_then(|leaf| leaf.manifest.parameters.as_ref())
            .map(|schema| caches.compile(schema)),
    }
}

/// Judges the pairs outside the binary. Those inside it are judged by a test, and verification shows that neither side
/// has changed since.
fn judge(tools: &[Arc<Tool>], mode: Mode, caches: &Caches) -> Report {
    let outside = tools.iter().take_while(|tool| tool.space != Space::System).count();
    let mut report = validate(tools.get(..=outside).unwrap_or(tools), mode, caches);
    report.validated_pairs = tools.len().saturating_sub(1);
    report.accepted.resize(tools.len(), true);
    report
}

impl Plan {
    /// The tools of the chain, leaf first.
    pub fn tools(&self) -> &[Arc<Tool>] {
        &self.tools
    }

    /// The chain as records show it.
    pub fn links(&self) -> &[Link] {
        &self.prepared.links
    }

    /// The hash over the chain.
    pub fn chain_hash(&self) -> Digest {
        self.prepared.chain_hash
    }

    /// The verdict of validation.
    pub fn report(&self) -> &Report {
        &self.prepared.report
    }

    /// Links whose bytes are not what was recorded.
    pub fn mismatches(&self) -> &[Mismatch] {
        &self.mismatches
    }

    /// The merged configuration.
    pub fn merged(&self) -> Result<&Merged, ChainError> {
        self.prepared.merged.as_ref().map_err(Clone::clone)
    }

    /// The upstream server it asks, and for what.
    pub fn upstream(&self) -> Option<(&str, UpstreamAction)> {
        self.prepared.merged.as_ref().ok().and_then(UpstreamCall::target)
    }

    /// The schema of the parameters.
    pub fn parameters(&self) -> Option<&Value> {
        self.tools.first()?.manifest.parameters.as_ref()
    }

    /// The secrets that its links and its configuration name.
    pub fn secrets(&self) -> BTreeSet<String> {
        let merged = self.prepared.merged.as_ref().ok();
        let auth = merged.and_then(|merged| merged.template.get("auth")?.get("secret")?.as_str());
        let declared = self.tools.iter().flat_map(|tool| tool.manifest.requires_secret.iter().cloned());
        declared.chain(auth.map(str::to_owned)).collect()
    }

    /// Everything worth saying that does not stop the call.
    pub fn warnings(&self) -> Vec<String> {
        self.tools
            .iter()
            .flat_map(|tool| &tool.warnings)
            .chain(&self.prepared.report.warnings)
            .chain(&self.prepared.slips)
            .cloned()
            .collect()
    }

    /// The strictest isolation that any link asks for; a leaf that says nothing asks for the default.
    pub fn isolation(&self) -> Isolation {
        let mut levels = self.tools.iter().map(|tool| tool.manifest.isolation);
        let leaf = levels.next().flatten().unwrap_or_default();
        let strictest = levels.flatten().fold(leaf, Isolation::max);
        // What came from elsewhere is never trusted, whatever it says of itself.
        let installed =
            self.tools.iter().any(|tool| tool.space != Space::System && tool.identity != Identity::Computed);
        if installed { strictest.max(Isolation::Standard) } else { strictest }
    }

    /// Whether a call changes something, as any link says.
    pub fn mutates(&self) -> bool {
        self.tools.iter().any(|tool| tool.manifest.mutates_state)
    }

    /// Whether two calls may not happen at once.
    pub fn is_exclusive(&self) -> bool {
        self.mutates() || self.tools.iter().any(|tool| tool.manifest.exclusive)
    }

    /// Whether the chain may run; the first stage that objects answers, with all its objections.
    pub fn require(&self) -> Result<(), ChainError> {
        if !self.mismatches.is_empty() {
            return Err(ChainError::IntegrityMismatch(self.mismatches.clone()));
        }
        if !self.prepared.report.valid() {
            return Err(ChainError::Invalid(self.prepared.report.clone()));
        }
        self.merged().map(|_| ())
    }

    /// Completes parameters with defaults and checks them.
    pub fn check_params(&self, params: Map<String, Value>) -> Result<Map<String, Value>, ChainError> {
        self.usable_parameters()?;
        let (Some(schema), Some(Ok(validator))) = (self.parameters(), &self.prepared.parameters) else {
            return Ok(params);
        };
        params::checked(schema, validator, params::with_defaults(schema, params))
    }

    /// Whether the schema of the parameters is one.
    pub fn usable_parameters(&self) -> Result<(), ChainError> {
        let (Some(Err(why)), Some(leaf)) = (&self.prepared.parameters, self.tools.first()) else {
            return Ok(());
        };
        let place = Place { line: 1, column: 1 };
        Err(ManifestError::one(leaf.path.clone(), format!("`parameters` is {why}"), None, place).into())
    }
}
