//! Grants: answers that are remembered.

use jiff::Timestamp;
use kiwi_model::{CanonicalError, Digest, Integrity, ToolId, canonical};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

use super::request::{Bound, hash};
use crate::permission::glob::Glob;

/// What a parameter may be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accept {
    /// What it was when it was approved, by its hash.
    Exactly(Digest),
    /// Anything, or left out.
    Any,
    /// What a wildcard matches.
    Matching(String),
}

/// Leave for calls of one tool, signed by the user's approval key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// Its name.
    pub id: String,
    /// When it was given.
    pub created_at: Timestamp,
    /// Until when it holds.
    pub expires_at: Timestamp,
    /// For which project.
    pub project: Option<String>,
    /// For whom, whatever the session.
    pub caller: String,
    /// For which tool.
    pub tool: ToolId,
    /// As it was: another version or a changed file is another tool.
    pub integrity: Integrity,
    /// With which parameters; what is not named here may not be given.
    pub predicate: BTreeMap<String, Accept>,
    /// The parameters it was given for, as a person may see them.
    #[serde(default)]
    pub params: Value,
    /// For how many calls.
    pub uses: u64,
    /// How many there were. Not signed: the gate counts.
    pub used: u64,
    /// Who gave it.
    pub by: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The request it answered.
    pub approval: String,
    /// The signature, hexadecimal.
    pub signature: String,
}

/// How an answer is to be remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remember {
    /// For how many calls.
    pub uses: u64,
    /// For how long.
    pub expires: std::time::Duration,
    /// Parameters that may vary.
    pub any: Vec<String>,
    /// Parameters that may vary within a wildcard.
    pub matching: Vec<(String, String)>,
}

impl Default for Remember {
    fn default() -> Self {
        Self {
            uses: Self::USES,
            expires: std::time::Duration::from_hours(24 * 30),
            any: Vec::new(),
            matching: Vec::new(),
        }
    }
}

impl Remember {
    /// How many calls, where nobody says.
    pub const USES: u64 = 100;

    /// What the parameters may be, or what is wrong with that.
    pub(crate) fn predicate(
        &self,
        given: &BTreeMap<String, Digest>,
    ) -> Result<BTreeMap<String, Accept>, String> {
        let mut predicate: BTreeMap<String, Accept> =
            given.iter().map(|(name, hash)| (name.clone(), Accept::Exactly(*hash))).collect();
        for name in &self.any {
            predicate.insert(name.clone(), Accept::Any);
        }
        for (name, pattern) in &self.matching {
            matcher(pattern)?;
            predicate.insert(name.clone(), Accept::Matching(pattern.clone()));
        }
        Ok(predicate)
    }
}

impl Grant {
    /// Whether a call is one of those it was given for.
    pub(crate) fn covers(&self, bound: &Bound) -> bool {
        self.project == bound.project
            && self.caller == bound.lasting_caller()
            && self.tool == bound.tool
            && self.integrity == bound.integrity
            && bound.params.keys().all(|name| self.predicate.contains_key(name))
            && self.predicate.iter().all(|(name, accept)| accept.accepts(bound.params.get(name)))
    }

    /// Whether there is anything left of it.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.used < self.uses && now < self.expires_at && now >= self.created_at
    }

    /// What is signed: everything but the count.
    pub(crate) fn signed_text(&self) -> Result<String, CanonicalError> {
        let mut value = serde_json::to_value(self).unwrap_or(Value::Null);
        if let Value::Object(map) = &mut value {
            map.remove("used");
            map.remove("signature");
        }
        canonical(&json!({"signed": "kiwi grant 1", "grant": value}))
    }
}

impl Accept {
    fn accepts(&self, value: Option<&Value>) -> bool {
        match (self, value) {
            (Self::Any, _) => true,
            (_, None) => false,
            (Self::Exactly(expected), Some(value)) => hash(value).is_ok_and(|hash| hash == *expected),
            (Self::Matching(pattern), Some(value)) => matches(pattern, value),
        }
    }
}

/// Whether a wildcard matches a value. A way up (`..`) is matched by none: `src/../x` is not in `src/`.
pub(crate) fn matches(pattern: &str, value: &Value) -> bool {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return false,
    };
    let climbs = text.split(['/', '\\']).any(|part| part == "..");
    !climbs && matcher(pattern).is_ok_and(|matcher| matcher.matches(&text))
}

fn matcher(pattern: &str) -> Result<Glob, String> {
    Glob::path(pattern).map_err(|why| format!("`{pattern}` is not a wildcard: {why}"))
}
