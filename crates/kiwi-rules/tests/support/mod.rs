//! What the suites share: a ruleset from texts, a request from JSON.
#![allow(dead_code, reason = "each suite uses a part of it")]

pub mod generate;
pub mod naive;
pub mod tree;

use kiwi_rules::{AdmissionResult, LoadError, RecordedRequest, RuleFile, RuleRegistry, evaluate_admission};
use serde_json::Value;

/// A ruleset from one text.
pub fn load(text: &str) -> Result<RuleRegistry, LoadError> {
    RuleRegistry::load(&[RuleFile { name: "test.kappa", bytes: text.as_bytes() }])
}

/// A ruleset that must load.
#[track_caller]
pub fn registry(text: &str) -> RuleRegistry {
    load(text).unwrap_or_else(|error| panic!("{error}"))
}

/// A request; keys that are left out say the least.
#[track_caller]
pub fn request(value: Value) -> RecordedRequest {
    serde_json::from_value(value).expect("a request")
}

/// What a ruleset says to a request.
#[track_caller]
pub fn admit(text: &str, value: Value) -> AdmissionResult {
    evaluate_admission(&request(value).request(), &registry(text))
}

/// A rule with one condition that admits.
pub fn when(condition: &str) -> String {
    format!("rule r {{ guards {{ {condition} -> admit }} effects {{ }} }}")
}
