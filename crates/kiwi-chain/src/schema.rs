//! Compiled JSON Schemas and judged pairs, kept by content.

use jsonschema::{PatternOptions, Validator};
use kiwi_model::{Digest, Space, canonical};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::plan::Prepared;
use crate::validate::PairVerdict;

/// What the caches keep apart: the same bytes judged in another place are another question.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct LinkKey {
    pub integrity: Digest,
    pub space: Space,
    pub category: String,
}

type Compiled = Result<Arc<Validator>, Arc<str>>;

/// The bounded caches of planning. Everything is keyed by content, so nothing ever needs to be invalidated.
pub struct Caches {
    schemas: moka::sync::Cache<Digest, Compiled>,
    pub(crate) pairs: moka::sync::Cache<(LinkKey, LinkKey, bool), Arc<PairVerdict>>,
    pub(crate) chains: moka::sync::Cache<(Vec<LinkKey>, bool), Arc<Prepared>>,
    counts: [AtomicU64; 6],
}

#[derive(Clone, Copy)]
pub(crate) enum Count {
    SchemaHit,
    SchemaMiss,
    PairHit,
    PairMiss,
    ChainHit,
    ChainMiss,
}

impl Default for Caches {
    fn default() -> Self {
        Self {
            schemas: moka::sync::Cache::new(1_000),
            pairs: moka::sync::Cache::new(10_000),
            chains: moka::sync::Cache::new(1_000),
            counts: Default::default(),
        }
    }
}

impl Caches {
    pub(crate) fn count(&self, which: Count) {
        if let Some(counter) = self.counts.get(which as usize) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Hits and misses of each cache, by name.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let names =
            ["schema_hits", "schema_misses", "pair_hits", "pair_misses", "chain_hits", "chain_misses"];
        names
            .into_iter()
            .zip(&self.counts)
            .map(|(name, counter)| (name, counter.load(Ordering::Relaxed)))
            .collect()
    }

    /// The compiled form of a schema, or why it has none.
    pub fn compile(&self, schema: &Value) -> Compiled {
        let key = Digest::of(canonical(schema).map_err(|error| Arc::from(error.to_string()))?.as_bytes());
        if let Some(compiled) = self.schemas.get(&key) {
            self.count(Count::SchemaHit);
            return compiled;
        }
        self.count(Count::SchemaMiss);
        let compiled = jsonschema::options()
            .offline()
            .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(100_000).size_limit(1 << 20))
            .build(schema)
            .map(Arc::new)
            .map_err(|error| Arc::from(format!("not a usable JSON Schema: {error}")));
        self.schemas.insert(key, compiled.clone());
        compiled
    }
}

/// Every way `instance` breaks a schema, in words, with the place inside the instance.
pub(crate) fn complaints(validator: &Validator, instance: &Value) -> Vec<String> {
    validator
        .iter_errors(instance)
        .map(|error| {
            let place = error.instance_path().to_string();
            let place = place.trim_start_matches('/').replace('/', ".");
            if place.is_empty() { error.to_string() } else { format!("`{place}`: {error}") }
        })
        .collect()
}
