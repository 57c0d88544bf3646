//! What rules judge: everything that is known about a call before it happens.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Answer;

/// How the caller works, as its profile says; never as the request does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are those of the profiles")]
pub enum Mode {
    #[default]
    Normal,
    Readonly,
    Admin,
}

impl Mode {
    /// As rules and profiles spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Readonly => "readonly",
            Self::Admin => "admin",
        }
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// What the permission context says about the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Permission {
    /// Whether it covers all that the call needs.
    pub allowed: bool,
    /// Its answer: `allow`, `ask` or `deny`.
    pub answer: Answer,
}

impl Default for Permission {
    /// Nothing is permitted that nobody has permitted.
    fn default() -> Self {
        Self { allowed: false, answer: Answer::Deny }
    }
}

/// One call, as rules see it.
#[derive(Debug, Clone, Copy)]
pub struct AdmissionRequest<'a> {
    /// Who asks.
    pub caller: &'a str,
    /// The id of the tool.
    pub tool: &'a str,
    /// The caller's mode, from its profile.
    pub mode: Mode,
    /// The parameters, normalised: what would really run.
    pub args: &'a Map<String, Value>,
    /// `script`, `api`, `mcp`, …
    pub tool_type: &'a str,
    /// The space the tool was found in.
    pub space: &'a str,
    /// Whether the tool says that a call changes something.
    pub mutates: bool,
    /// A snapshot of counters, reputation and epoch.
    pub state: &'a Map<String, Value>,
    /// Whether a person is there to answer, as the face says.
    pub interactive: bool,
    /// What the permission context says.
    pub permission: Permission,
    /// The ruleset version the caller relies on, if it says so.
    pub rule_version: Option<&'a str>,
}

/// A request as JSON spells it: in examples, and in records that are replayed. Keys that are left out say the least:
/// empty, `false`, mode `normal`, nothing permitted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields are those of `AdmissionRequest`")]
pub struct RecordedRequest {
    pub caller: String,
    pub tool: String,
    pub mode: Mode,
    pub args: Map<String, Value>,
    pub tool_type: String,
    pub space: String,
    pub mutates: bool,
    pub state: Map<String, Value>,
    pub interactive: bool,
    pub permission: Permission,
}

impl RecordedRequest {
    /// The request, with no version relied on.
    pub fn request(&self) -> AdmissionRequest<'_> {
        AdmissionRequest {
            caller: &self.caller,
            tool: &self.tool,
            mode: self.mode,
            args: &self.args,
            tool_type: &self.tool_type,
            space: &self.space,
            mutates: self.mutates,
            state: &self.state,
            interactive: self.interactive,
            permission: self.permission,
            rule_version: None,
        }
    }
}
