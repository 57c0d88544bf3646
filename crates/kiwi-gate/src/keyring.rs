//! The desktop's keyring as the keeper of the credential store's key.

use kiwi_exec::{Asking, Keyring, KeyringError};
use kiwi_model::Secret;
use kiwi_space::{KeeperProblem, KeyKeeper, KeyringUse, Nobody};
use std::sync::Arc;

use crate::host::Host;

/// What people see in the program that manages their passwords.
const LABEL: &str = "Kiwi credential store";

#[derive(Debug)]
struct Desktop(Keyring);

/// Who keeps keys here. Nothing is opened before somebody asks for a key.
pub(crate) fn keeper(host: &Host, wanted: KeyringUse) -> Arc<dyn KeyKeeper> {
    match (wanted, host.session_bus()) {
        (KeyringUse::Off, _) => Arc::new(Nobody(KeeperProblem::Off)),
        (KeyringUse::Auto, None) => Arc::new(Nobody(KeeperProblem::Absent)),
        (KeyringUse::Auto, Some(address)) => {
            let is_attended = host.has_terminal && !host.is_unattended();
            let asking = if is_attended { Asking::Allowed } else { Asking::Never };
            Arc::new(Desktop(Keyring::new(address, asking)))
        }
    }
}

impl KeyKeeper for Desktop {
    fn get(&self, name: &str) -> Result<Option<Secret>, KeeperProblem> {
        self.0.get(name).map_err(problem)
    }

    fn put(&self, name: &str, key: &Secret) -> Result<(), KeeperProblem> {
        self.0.put(name, LABEL, key).map_err(problem)
    }

    fn forget(&self, name: &str) -> Result<(), KeeperProblem> {
        self.0.forget(name).map_err(problem)
    }
}

fn problem(error: KeyringError) -> KeeperProblem {
    match error {
        KeyringError::Absent => KeeperProblem::Absent,
        KeyringError::Locked => KeeperProblem::Locked,
        KeyringError::Silent { seconds } => KeeperProblem::Silent { seconds },
        KeyringError::Refused { why } => KeeperProblem::Refused { why },
    }
}
