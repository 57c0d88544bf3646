//! `verify`: under the lock, after what a crash left open was completed.

use kiwi_model::{ErrorKind, Fault};

use super::check::{Verification, Vouched, check};
use super::place::Place;
use super::writer::{Patience, Writer};

/// Checks a log. A log that nobody began is whole.
pub(super) fn verify(place: &Place) -> Result<Verification, Fault> {
    let unreadable = |error: std::io::Error| {
        Fault::new(ErrorKind::Internal, format!("the audit log cannot be read: {error}"))
            .with_hint("it is in `.ai/logs`, its head in the `.ai/audit` of the user space")
    };
    let mut writer = Writer::new(place.clone());
    if !place.journal.exists() {
        // Nothing to lock. A head without a journal is a finding, not something to begin a journal for.
        let read = match std::fs::read(&place.head) {
            Ok(bytes) => Some(super::head::Head::parse(&bytes, writer.boot())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(unreadable(error)),
        };
        let vouched = match &read {
            None => Vouched::Nobody,
            Some(Ok(head)) => Vouched::By(head),
            Some(Err(why)) => Vouched::Damaged(why.clone()),
        };
        return check(place, &vouched).map_err(unreadable);
    }
    writer.hold(Patience::Waits).map_err(unreadable)?;
    let refreshed = if place.head.exists() { Some(writer.refresh()) } else { None };
    let vouched = match refreshed.map(|refreshed| refreshed.and_then(|()| writer.head())) {
        None => Vouched::Nobody,
        Some(Ok(Some(head))) => Vouched::By(head),
        Some(Ok(None)) => Vouched::Damaged("it is empty".into()),
        Some(Err(why)) => Vouched::Damaged(why),
    };
    let checked = check(place, &vouched).map_err(unreadable);
    writer.release();
    checked
}
