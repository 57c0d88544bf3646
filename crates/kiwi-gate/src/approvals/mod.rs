//! Approvals and grants: what a person said about a call, and nobody else can have said.
//!
//! Everything is in files of the user space, which no sandbox shows: a request in `approvals/`, a remembered answer in
//! `grants/`. Answers are signed by the user's approval key; one that is not counts as not given. Every change is made
//! under one lock, so that an answer is used once, whoever asks at the same time. What cannot be read denies.

mod answer;
mod decide;
mod escalate;
mod grant;
mod id;
mod request;
mod store;

use jiff::SignedDuration;
use kiwi_model::limit::ApprovalConfig;
use kiwi_model::{Explain as _, Fault};
use kiwi_space::{PublicKey, SpaceError, Spaces};

pub use answer::{Answer, Answered, Undone};
pub use decide::{Approved, AskMode, Pending};
pub use escalate::Escalation;
pub use grant::{Accept, Grant, Remember};
pub use request::{Approval, ApprovalKind, ApprovalState, Bound, Decided, Question, Verdict};
pub use store::{Entry, Standing};

pub(crate) use id::fresh as fresh_id;
pub(crate) use request::lasting;

use self::store::Store;
use crate::kernel::Kernel;

/// Requests, answers and grants of a user.
pub struct Approvals {
    store: Store,
    timeout: SignedDuration,
}

impl Approvals {
    /// Those of the user space.
    pub fn open(spaces: &Spaces, config: ApprovalConfig) -> Result<Self, SpaceError> {
        let seconds = i64::try_from(config.timeout()).unwrap_or(i64::MAX);
        Ok(Self { store: Store::open(spaces)?, timeout: SignedDuration::from_secs(seconds) })
    }

    /// Every request, by name; what cannot be read is among them.
    pub fn all(&self) -> Result<Vec<Entry<Approval>>, Fault> {
        store::all(&self.store.approvals).map_err(|error| error.fault())
    }

    /// Every grant, by name; what cannot be read is among them.
    pub fn grants(&self) -> Result<Vec<Entry<Grant>>, Fault> {
        store::all(&self.store.grants).map_err(|error| error.fault())
    }

    /// The key that answers must be signed by; none where nobody has answered yet.
    pub fn key(&self) -> Result<Option<PublicKey>, Fault> {
        self.store.verifier().map_err(|error| error.fault())
    }
}

impl Kernel {
    /// Requests, answers and grants. How long a request waits was written into it when it was made.
    pub fn approvals(&self) -> Result<Approvals, Fault> {
        Approvals::open(self.spaces(), ApprovalConfig::default()).map_err(|error| error.fault())
    }
}

#[cfg(test)]
mod tests;
