//! For benchmarks alone: parts of the gate without the rest of it.

use kiwi_model::Fault;
use kiwi_model::record::Record;
use kiwi_space::Spaces;

use crate::audit::{AuditLog, Durability, Place};
use crate::kernel::Kernel;
use crate::request::Session;
use crate::stage::{Call, Next, Reply, Stage, StageFuture};

/// The audit log by itself.
#[derive(Debug, Clone)]
pub struct Log(AuditLog);

impl Log {
    /// The log of these spaces.
    pub fn of(spaces: &Spaces) -> Self {
        Self(AuditLog::new(Place::of(spaces, None)))
    }

    /// Appends a record, durably.
    pub async fn append(&self, session: Session, record: Record) -> Result<(), Fault> {
        self.0.append(session, record, Durability::OnDisk).await
    }
}

/// A kernel whose calls pass every stage and come to nothing.
#[must_use]
pub fn without_effects(mut kernel: Kernel) -> Kernel {
    kernel.stages.pop();
    kernel.stages.push(Box::new(Nothing));
    kernel
}

struct Nothing;

impl Stage for Nothing {
    fn run<'a>(&'a self, _: Call<'a>, _: Next<'a>) -> StageFuture<'a> {
        Box::pin(std::future::ready(Ok(Reply::default())))
    }
}
