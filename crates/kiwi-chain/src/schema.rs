//! Compiled JSON Schemas and judged pairs, kept by content.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use kiwi_model::{Digest, Space, canonical};
use serde_json::Value;
use std::sync::Arc;

use crate::cache::Cache;
use crate::pattern::{Pattern, plain_patterns};
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
    schemas: Cache<Digest, Compiled>,
    pub(crate) pairs: Cache<(LinkKey, LinkKey, bool), Arc<PairVerdict>>,
    pub(crate) chains: Cache<(Vec<LinkKey>, bool), Arc<Prepared>>,
}

impl Default for Caches {
    fn default() -> Self {
        Self { schemas: Cache::new(1_000), pairs: Cache::new(10_000), chains: Cache::new(1_000) }
    }
}

impl Caches {
    /// Hits and misses of each cache, by name.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let counts = [
            ("schema_hits", "schema_misses", self.schemas.counts()),
            ("pair_hits", "pair_misses", self.pairs.counts()),
            ("chain_hits", "chain_misses", self.chains.counts()),
        ];
        counts.into_iter().flat_map(|(hits, misses, (hit, missed))| [(hits, hit), (misses, missed)]).collect()
    }

    /// The compiled form of a schema, or why it has none.
    pub fn compile(&self, schema: &Value) -> Compiled {
        let key = Digest::of(canonical(schema).map_err(|error| Arc::from(error.to_string()))?.as_bytes());
        if let Some(compiled) = self.schemas.get(&key) {
            return compiled;
        }
        let mut options = jsonschema::options()
            .offline()
            .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(100_000).size_limit(1 << 20));
        if let Some(patterns) = plain_patterns(schema).filter(|patterns| !patterns.is_empty()) {
            options = options.with_keyword("pattern", move |_, text, _| {
                let known = text.as_str().and_then(|text| patterns.get_key_value(text));
                let (text, regex) = known.ok_or_else(|| ValidationError::custom("it is not a pattern"))?;
                Ok(Box::new(Pattern { text: text.clone(), regex: regex.clone() }))
            });
        }
        let compiled = options
            .build(schema)
            .map(Arc::new)
            .map_err(|error| Arc::from(format!("not a usable JSON Schema: {}", unusable(&error))));
        self.schemas.insert(key, compiled.clone());
        compiled
    }
}

/// One way in which a value breaks a schema.
#[derive(Debug)]
pub(crate) struct Complaint {
    /// JSON pointer of the part that is wrong.
    pub pointer: String,
    /// What is wrong with it.
    pub message: String,
}

impl std::fmt::Display for Complaint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = self.pointer.trim_start_matches('/').replace('/', ".");
        if !place.is_empty() {
            write!(f, "`{place}`: ")?;
        }
        f.write_str(&self.message)
    }
}

/// Every way `instance` breaks a schema.
pub(crate) fn complaints(validator: &Validator, instance: &Value) -> Vec<Complaint> {
    validator.iter_errors(instance).map(|error| complaint(&error)).collect()
}

fn complaint(error: &ValidationError<'_>) -> Complaint {
    let message = match error.kind() {
        // All of them, where the library names a few.
        ValidationErrorKind::Enum { options } => {
            let options = options.as_array().into_iter().flatten().map(Value::to_string);
            format!("{} is not one of {}", error.instance(), options.collect::<Vec<_>>().join(", "))
        }
        _ => error.to_string(),
    };
    Complaint { pointer: error.instance_path().to_string(), message }
}

/// Why a schema is none, and where.
fn unusable(error: &ValidationError<'_>) -> Complaint {
    let complaint = complaint(error);
    // A property may have that name too.
    if complaint.pointer.ends_with("/type") && !complaint.pointer.ends_with("/properties/type") {
        let message = format!(
            "{} is no type; there are string, integer, number, boolean, array, object and null",
            error.instance()
        );
        return Complaint { message, ..complaint };
    }
    complaint
}
