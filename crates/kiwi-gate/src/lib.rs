//! The one call path. Every face, whatever it speaks, hands a [`Request`] to [`Kernel::call`] and gets an [`Outcome`].
//!
//! **Owns** the order of things: plan, check, record, dispatch, record. Each step after planning is a [`Stage`], and
//! they are composed in one place (`kernel.rs`), so that a new one slots in without any caller noticing.
//!
//! **Deliberately absent**: printing, reading flags, and any way around the record. If the enter record cannot be
//! written, the call does not happen.
//!
//! Read first: [`Request`] and [`Outcome`] (what goes in and comes out), [`Kernel`] (the path between them).

mod admission;
mod agreement;
mod approvals;
mod audit;
mod cache;
mod catalogue;
mod check;
mod confine;
mod credentials;
mod encodings;
mod explain;
mod finding;
mod help;
mod host;
mod kernel;
mod keyring;
mod limits;
mod lockfiles;
mod look;
#[doc(hidden)]
pub mod measured;
mod oauth;
mod outcome;
mod permission;
mod planner;
mod prepare;
mod redact;
mod remembered;
mod request;
mod rule_state;
mod rulebook;
mod rules;
mod sharing;
mod stage;
mod stages;
mod trust;
mod unprepared;
mod upstream;
mod vault;

pub use admission::{Judge, Objection, OnDeny, ToolAdmissionDenied, Why};
pub use agreement::{Agreement, Planned};
pub use approvals::{
    Accept, Answer, Answered, Approval, ApprovalKind, ApprovalState, Approvals, Approved, AskMode, Bound,
    Decided, Entry, Escalation, Grant, Pending, Question, Remember, Standing, Undone, Verdict,
};
pub use audit::{Audit, AuditCall, AuditFinding, AuditLine, CallState, ExportFormat, Verification};
pub use cache::{Cache, CacheItem, CacheKind};
pub use check::Finding;
pub use credentials::{Auth, Login};
pub use explain::{Explanation, JudgeAnswer};
pub use finding::{
    Asker, Found, FoundItem, Hurried, Keeping, Overview, Progress, Search, Source, TierCheck, TierState,
};
pub use help::{Attempts, CallLine, Help, HelpRequest, SessionDetail, SessionSummary, Signal, StuckReview};
pub use host::Host;
pub use kernel::Kernel;
pub use lockfiles::Lockfiles;
pub use oauth::DeviceCode;
pub use outcome::{Outcome, Timing, ToolIdentity};
pub use permission::{Glob, Kind, Layer, Need, PermissionContext, Protected, needs_of, programs_of_line};
pub use request::{Arguments, Caller, Cancel, OnPending, Request, Session};
pub use rules::{Replayed, Rules};
pub use sharing::{
    Change, Installation, InstalledLink, LinkState, Outdated, Publish, PublishState, Published, Resolve,
    Sharing, Synced, SyncedLock, Transfer, Uninstalled, Update,
};
pub use stage::{Call, Next, Reply, Stage, StageFuture};
