//! Compiled JSON Schemas and judged pairs, kept by content.

use jsonschema::{Draft, PatternOptions, Validator};
use kiwi_model::{Digest, Space, canonical};
use serde_json::Value;
use std::sync::Arc;

use crate::cache::Cache;
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
        // What both drafts read alike is read as the older one: its meta-schema is a tenth of the work to load, and
        // that is most of what a single command spends on validation.
        let options = if is_plain(schema) {
            jsonschema::options().with_draft(Draft::Draft7)
        } else {
            jsonschema::options()
        };
        let compiled = options
            .offline()
            .should_validate_formats(false)
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

/// Keywords whose meaning has not changed since draft 7, by what their value is.
const SCHEMAS: [&str; 7] = ["additionalProperties", "propertyNames", "not", "if", "then", "else", "items"];
const MAPS_OF_SCHEMAS: [&str; 2] = ["properties", "patternProperties"];
const LISTS_OF_SCHEMAS: [&str; 3] = ["anyOf", "oneOf", "allOf"];
const VALUES: [&str; 22] = [
    "type",
    "required",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "title",
    "description",
    "default",
    "examples",
    "format",
];

/// Whether a schema holds only keywords that every draft since 7 reads alike.
fn is_plain(schema: &Value) -> bool {
    let map = match schema {
        Value::Bool(_) => return true,
        Value::Object(map) => map,
        _ => return false,
    };
    map.iter().all(|(key, value)| match key.as_str() {
        key if VALUES.contains(&key) => true,
        key if SCHEMAS.contains(&key) => is_plain(value),
        key if MAPS_OF_SCHEMAS.contains(&key) => {
            value.as_object().is_some_and(|map| map.values().all(is_plain))
        }
        key if LISTS_OF_SCHEMAS.contains(&key) => {
            value.as_array().is_some_and(|list| list.iter().all(is_plain))
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_every_draft_reads_alike_is_plain() {
        for plain in [
            json!(true),
            json!({"type": "object", "properties": {"a": {"items": {"enum": [1]}}}, "required": ["a"], "additionalProperties": false}),
            json!({"anyOf": [{"const": 1}, {"not": {}}]}),
        ] {
            assert!(is_plain(&plain), "{plain}");
        }
        for other in [
            json!({"$ref": "#/$defs/a"}),
            json!({"items": [{}]}),
            json!({"prefixItems": []}),
            json!({"properties": {"a": {"$dynamicRef": "x"}}}),
            json!({"dependentRequired": {}}),
            json!({"contains": {}, "minContains": 2}),
        ] {
            assert!(!is_plain(&other), "{other}");
        }
    }

    #[test]
    fn both_ways_of_reading_a_plain_schema_agree() {
        let caches = Caches::default();
        let schemas = [
            json!({"type": "object", "properties": {"n": {"type": "integer", "exclusiveMinimum": 0}, "s": {"type": ["string", "null"], "pattern": "^a", "format": "email"}, "l": {"items": {"multipleOf": 2}, "uniqueItems": true}}, "required": ["n"], "additionalProperties": false}),
        ];
        let instances = [
            json!({"n": 1}),
            json!({"n": 0}),
            json!({"n": 1.0}),
            json!({"n": 1, "s": "abc"}),
            json!({"n": 1, "s": null}),
            json!({"n": 1, "s": "b"}),
            json!({"n": 1, "l": [2, 4]}),
            json!({"n": 1, "l": [2, 2]}),
            json!({"n": 1, "l": [3]}),
            json!({"x": 1}),
            json!([]),
        ];
        for schema in &schemas {
            let newest = jsonschema::options().should_validate_formats(false).build(schema).expect("schema");
            let ours = caches.compile(schema).expect("schema");
            for instance in &instances {
                assert_eq!(ours.is_valid(instance), newest.is_valid(instance), "{schema} on {instance}");
            }
        }
    }
}
