//! How anything that goes wrong is told: a stable kind, a sentence, a hint, typed details.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The stable kinds of failure. Policy, scripts and agents match on these; their spelling never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the contract and say what they mean")]
pub enum ErrorKind {
    Usage,
    NotFound,
    Ambiguous,
    InvalidManifest,
    InvalidParams,
    Cycle,
    TooDeep,
    VersionConflict,
    IntegrityMismatch,
    ChainInvalid,
    SpaceViolation,
    LockfileMissing,
    LockfileMismatch,
    Denied,
    RateLimited,
    LoopDetected,
    ApprovalRequired,
    MissingRequirement,
    SandboxUnavailable,
    Timeout,
    OutputLimit,
    ToolFailed,
    UpstreamUnavailable,
    Internal,
}

/// How a call ended, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The tool ran and succeeded.
    Success,
    /// Something failed: the tool, or the request itself.
    Error,
    /// Kiwi decided that the call must not happen.
    Refused,
    /// A person has to decide first.
    Pending,
}

impl ErrorKind {
    /// Every kind, in the order of the contract.
    pub const ALL: [Self; 24] = [
        Self::Usage,
        Self::NotFound,
        Self::Ambiguous,
        Self::InvalidManifest,
        Self::InvalidParams,
        Self::Cycle,
        Self::TooDeep,
        Self::VersionConflict,
        Self::IntegrityMismatch,
        Self::ChainInvalid,
        Self::SpaceViolation,
        Self::LockfileMissing,
        Self::LockfileMismatch,
        Self::Denied,
        Self::RateLimited,
        Self::LoopDetected,
        Self::ApprovalRequired,
        Self::MissingRequirement,
        Self::SandboxUnavailable,
        Self::Timeout,
        Self::OutputLimit,
        Self::ToolFailed,
        Self::UpstreamUnavailable,
        Self::Internal,
    ];

    /// The status a failure of this kind ends a call with.
    pub const fn status(self) -> Status {
        match self {
            Self::ToolFailed
            | Self::Timeout
            | Self::OutputLimit
            | Self::UpstreamUnavailable
            | Self::Usage
            | Self::NotFound
            | Self::Ambiguous
            | Self::InvalidManifest
            | Self::InvalidParams
            | Self::Cycle
            | Self::TooDeep
            | Self::VersionConflict
            | Self::Internal => Status::Error,
            Self::IntegrityMismatch
            | Self::ChainInvalid
            | Self::SpaceViolation
            | Self::LockfileMissing
            | Self::LockfileMismatch
            | Self::Denied
            | Self::RateLimited
            | Self::LoopDetected
            | Self::MissingRequirement
            | Self::SandboxUnavailable => Status::Refused,
            Self::ApprovalRequired => Status::Pending,
        }
    }

    /// The process exit code for this kind.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::ToolFailed | Self::Timeout | Self::OutputLimit | Self::UpstreamUnavailable => 1,
            Self::Usage
            | Self::NotFound
            | Self::Ambiguous
            | Self::InvalidManifest
            | Self::InvalidParams
            | Self::Cycle
            | Self::TooDeep
            | Self::VersionConflict => 2,
            Self::IntegrityMismatch
            | Self::ChainInvalid
            | Self::SpaceViolation
            | Self::LockfileMissing
            | Self::LockfileMismatch
            | Self::Denied
            | Self::RateLimited
            | Self::LoopDetected
            | Self::MissingRequirement
            | Self::SandboxUnavailable => 3,
            Self::ApprovalRequired => 4,
            Self::Internal => 70,
        }
    }

    /// The stable spelling, as printed in `error.kind`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::NotFound => "not_found",
            Self::Ambiguous => "ambiguous",
            Self::InvalidManifest => "invalid_manifest",
            Self::InvalidParams => "invalid_params",
            Self::Cycle => "cycle",
            Self::TooDeep => "too_deep",
            Self::VersionConflict => "version_conflict",
            Self::IntegrityMismatch => "integrity_mismatch",
            Self::ChainInvalid => "chain_invalid",
            Self::SpaceViolation => "space_violation",
            Self::LockfileMissing => "lockfile_missing",
            Self::LockfileMismatch => "lockfile_mismatch",
            Self::Denied => "denied",
            Self::RateLimited => "rate_limited",
            Self::LoopDetected => "loop_detected",
            Self::ApprovalRequired => "approval_required",
            Self::MissingRequirement => "missing_requirement",
            Self::SandboxUnavailable => "sandbox_unavailable",
            Self::Timeout => "timeout",
            Self::OutputLimit => "output_limit",
            Self::ToolFailed => "tool_failed",
            Self::UpstreamUnavailable => "upstream_unavailable",
            Self::Internal => "internal",
        }
    }
}

impl std::fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error that can explain itself to a person and to a program.
///
/// Each crate has one error enum whose variants are facts; this trait turns a fact into what a face shows.
pub trait Explain: std::error::Error {
    /// Which stable kind this is.
    fn kind(&self) -> ErrorKind;
    /// What to do next, if there is something to say.
    fn hint(&self) -> Option<String> {
        None
    }
    /// Typed facts for programs.
    fn details(&self) -> Value {
        Value::Null
    }
    /// The rendered report.
    fn fault(&self) -> Fault {
        Fault { kind: self.kind(), message: self.to_string(), hint: self.hint(), details: self.details() }
    }
}

/// A failure as every face shows it: `error` in `--json`, a sentence and a hint on a terminal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// The stable kind.
    pub kind: ErrorKind,
    /// One sentence: lowercase, no full stop, user values in backticks.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
    /// Typed facts.
    pub details: Value,
}

impl Fault {
    /// A fault with only a kind and a sentence.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, details: Value::Null }
    }

    /// The same fault with a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same fault with typed details.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = details;
        self
    }
}
