//! The record of a call: one line before the effect, one after it, each linked to the line before.

mod journal;
mod line;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lockfile::LockMode;
use crate::{Digest, ErrorKind, Integrity, Link, Space, ToolId, Version};

pub use journal::JournalEntry;
pub use line::{Line, LineError, Sealed};

/// What a line reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A call that could not be planned.
    Request,
    /// A call that was refused.
    Denied,
    /// Written, durably, before the effect.
    Enter,
    /// Written after it, always.
    Exit,
}

impl Event {
    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Denied => "denied",
            Self::Enter => "enter",
            Self::Exit => "exit",
        }
    }
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallResult {
    /// Whether it succeeded.
    pub ok: bool,
    /// The kind of failure, if it did not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub kind: Option<ErrorKind>,
    /// How long the tool ran.
    pub duration_us: u64,
    /// Digest of its output.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub output_hash: Option<Digest>,
}

/// One line of the audit log, without its links to its neighbours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Which event.
    pub event: Event,
    /// When, RFC 3339.
    pub at: String,
    /// Which session.
    pub session: String,
    /// Which call: the same on its enter and its exit, and on no other line.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub call: Option<String>,
    /// Who asked.
    pub caller: String,
    /// What was asked for, as the caller wrote it or as it was resolved.
    pub tool: String,
    /// The resolved version.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub version: Option<Version>,
    /// The resolved identity.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub integrity: Option<Integrity>,
    /// The hash over the chain.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub chain_hash: Option<Digest>,
    /// Every link's identity.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub chain: Vec<ChainEntry>,
    /// The lockfile it was held against.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lockfile: Option<LockNote>,
    /// The parameters, secrets left out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub params: Option<Value>,
    /// Where something was left out of them, as JSON pointers.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub redacted: Vec<String>,
    /// Digest of the canonical parameters, nothing left out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub params_hash: Option<Digest>,
    /// What the gate said, and why.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub decision: Option<DecisionNote>,
    /// The version of the rules that were in force.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rules_version: Option<Digest>,
    /// What the caller was allowed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub permission: Option<PermissionNote>,
    /// How it ended (`exit`), or why it did not start (`request`, `denied`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub result: Option<CallResult>,
}

/// A decision as the record keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecisionNote {
    /// Which decision of this gate it was, counted from 1: an order that no clock can change.
    pub sequence: u64,
    /// `allow`, `ask` or `deny`.
    pub answer: String,
    /// Everything that was said against the call, or asked about it: typed reasons.
    pub reasons: Vec<Value>,
    /// Who approved it, where somebody was asked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub approved_by: Option<String>,
    /// The request or the grant by which they did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub approval: Option<String>,
    /// What rules reported.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub events: Vec<Value>,
    /// What the rules judged beside the parameters, so that the call can be judged again by other rules.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub judged: Option<Value>,
}

/// What a caller was allowed, as the record keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionNote {
    /// The profile in force.
    pub profile: String,
    /// Whether it covers all that the call needs.
    pub allowed: bool,
    /// Its answer: `allow`, `ask` or `deny`.
    pub answer: String,
}

/// A lockfile as the record keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockNote {
    /// Its key: `category/tool@version`, with the chain hash behind it for an alternative.
    pub key: String,
    /// Whose it is.
    pub scope: Space,
    /// Digest of the file.
    pub digest: Digest,
    /// What a difference means.
    pub mode: LockMode,
    /// Whether the chain was as agreed.
    pub agrees: bool,
}

/// A link as the record keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainEntry {
    /// Which tool.
    pub tool_id: ToolId,
    /// Which version.
    pub version: Version,
    /// Its identity.
    pub integrity: Integrity,
}

impl From<&Link> for ChainEntry {
    fn from(link: &Link) -> Self {
        Self { tool_id: link.tool_id.clone(), version: link.version.clone(), integrity: link.integrity }
    }
}
