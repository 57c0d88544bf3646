//! For benchmarks alone: a part of the gate without the rest of it.

use kiwi_model::Fault;
use kiwi_model::record::Record;
use kiwi_space::Spaces;

use crate::audit::{AuditLog, Durability, Place};
use crate::request::Session;

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
