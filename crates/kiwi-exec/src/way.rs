//! How a launcher begins: which program it is, and what it does while its orders are being drawn up.

use kiwi_model::Isolation;
use std::sync::{Arc, Mutex, PoisonError};

use crate::confinement::Backend;
use crate::error::ExecError;
use crate::launcher::{Door, Role};
use crate::process::{Launcher, Process};
use crate::running::Started;
use crate::sandbox::{Builder, bubblewrap};
use crate::snapshot::random_name;

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// It waits for its orders.
    Plain,
    /// The same, by Kiwi itself, which speaks to container engines.
    ThroughKiwi,
    /// It is the first process of its sandbox, and begins with its walls.
    Walled,
}

impl Way {
    /// The one for a process.
    pub fn of(process: &Process, builder: Option<&Builder>) -> Self {
        match builder {
            Some(Builder::Container(_)) => Self::ThroughKiwi,
            // What is to be born in a group is not there before the group.
            Some(Builder::Native) if !process.confinement.limits.need_group() => Self::Walled,
            _ => Self::Plain,
        }
    }

    /// The one that is likely for a process of which no more is known.
    fn expected(isolation: Isolation, backend: &Backend, search_path: &str) -> Self {
        if isolation < Isolation::Sandboxed {
            return Self::Plain;
        }
        match backend {
            Backend::Container(_) => Self::ThroughKiwi,
            Backend::Native => Self::Walled,
            Backend::Auto if bubblewrap(search_path).is_none() => Self::Walled,
            Backend::Auto | Backend::Bubblewrap => Self::Plain,
        }
    }

    /// Whether a launcher that has begun in this way can do what another is asked for. One outside can always build walls.
    fn serves(self, other: Self) -> bool {
        self == other || (self, other) == (Self::Plain, Self::Walled)
    }

    /// Starts a launcher that begins so.
    pub fn start(self, door: &Door) -> Result<Started, ExecError> {
        let call = random_name()?;
        match self {
            Self::Plain => Started::start(door, Role::Plain, call),
            Self::ThroughKiwi => Started::start(&door.of_kiwi(), Role::Plain, call),
            // Where it cannot be born there, another can say why.
            Self::Walled => Started::start(door, Role::First, call.clone())
                .or_else(|_| Started::start(door, Role::Plain, call)),
        }
    }
}

/// At most one launcher that was started before its process was known.
#[derive(Debug, Clone, Default)]
pub struct Ahead(Arc<Mutex<Option<(Way, Started)>>>);

impl Ahead {
    fn put(&self, way: Way, started: Started) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((way, started));
    }

    /// The launcher, for whoever comes first of those whom it can serve.
    pub fn take(&self, way: Way) -> Option<Started> {
        let mut ahead = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ahead.take_if(|(begun, _)| begun.serves(way)).map(|(_, started)| started)
    }
}

impl Launcher {
    /// Starts the launcher of the next process now, by what is known of that: loading it, and building walls, can go on beside
    /// whatever is still to be done. It has no effect: a launcher without orders leaves when Kiwi does. For a Kiwi that
    /// makes one call and then ends itself.
    pub fn start_ahead(&self, isolation: Isolation, backend: &Backend, search_path: &str) {
        let way = Way::expected(isolation, backend, search_path);
        // Whatever goes wrong here goes wrong again, and is told, when the process is to run.
        if let Ok(started) = way.start(&self.door) {
            self.ahead.put(way, started.ahead());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_likely_is_told_by_level_and_backend() {
        let tools = tempfile::tempdir().unwrap();
        let (none, some) = ("/nowhere", tools.path().to_str().unwrap());
        let bwrap = tools.path().join("bwrap");
        std::fs::write(&bwrap, "#!/bin/sh\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&bwrap, mode).unwrap();
        for backend in [Backend::Auto, Backend::Native, Backend::Bubblewrap] {
            assert_eq!(Way::expected(Isolation::Standard, &backend, none), Way::Plain);
        }
        for level in [Isolation::Sandboxed, Isolation::Restricted] {
            assert_eq!(Way::expected(level, &Backend::Auto, none), Way::Walled);
            assert_eq!(Way::expected(level, &Backend::Auto, some), Way::Plain);
            assert_eq!(Way::expected(level, &Backend::Native, some), Way::Walled);
            assert_eq!(Way::expected(level, &Backend::Bubblewrap, none), Way::Plain);
        }
    }

    #[test]
    fn who_is_behind_walls_serves_nobody_outside() {
        assert!(Way::Plain.serves(Way::Walled));
        assert!(!Way::Walled.serves(Way::Plain));
        assert!(!Way::Plain.serves(Way::ThroughKiwi));
    }
}
