//! The desktop's keyring: texts kept under names by whoever speaks the Secret Service interface on the session bus.
//!
//! Each question opens a connection of its own, on a thread and a runtime of its own: who asks may be in the middle of
//! other work, and one question per call needs no connection that is kept. Nothing waits for ever: a service that does
//! not answer and a person who does not come are both told apart from a keyring that is not there.

mod service;

use kiwi_model::Secret;
use std::time::Duration;

use service::Service;

/// A service on the same machine answers in milliseconds, and one that has to be started first in a second or two.
const PATIENCE: Duration = Duration::from_secs(10);
/// A person has to find the window and type.
const PERSON: Duration = Duration::from_mins(1);

/// The keyring behind one session bus.
#[derive(Debug, Clone)]
pub struct Keyring {
    address: String,
    asking: Asking,
}

/// Whether the keyring may ask a person to unlock it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// Somebody is there to answer; they have a minute.
    Allowed,
    /// Nobody is: what is locked stays locked.
    Never,
}

/// Why a keyring gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyringError {
    /// There is no bus, no service on it, or nowhere in it to put anything.
    #[error("no keyring answers")]
    Absent,
    /// It is locked, and nobody unlocked it.
    #[error("the keyring is locked")]
    Locked,
    /// It is there and says nothing.
    #[error("the keyring did not answer within {seconds} s")]
    Silent {
        /// How long was waited.
        seconds: u64,
    },
    /// It answered with an error.
    #[error("the keyring refused: {why}")]
    Refused {
        /// In its own words.
        why: String,
    },
}

impl Keyring {
    /// The keyring on the bus with this address. Nothing is opened yet.
    pub fn new(address: impl Into<String>, asking: Asking) -> Self {
        Self { address: address.into(), asking }
    }

    /// What is kept under this name.
    pub fn get(&self, name: &str) -> Result<Option<Secret>, KeyringError> {
        self.talk(async |service| service.read(name).await)
    }

    /// Keeps a text under this name, in place of what was there.
    pub fn put(&self, name: &str, label: &str, secret: &Secret) -> Result<(), KeyringError> {
        self.talk(async |service| service.write(name, label, secret).await)
    }

    /// Forgets what is kept under this name.
    pub fn forget(&self, name: &str) -> Result<(), KeyringError> {
        self.talk(async |service| service.erase(name).await)
    }

    fn talk<T: Send>(
        &self,
        work: impl AsyncFnOnce(&Service) -> Result<T, KeyringError> + Send,
    ) -> Result<T, KeyringError> {
        let talk = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| KeyringError::Refused { why: error.to_string() })?;
            runtime.block_on(async {
                let service = Service::connect(&self.address, self.asking).await?;
                work(&service).await
            })
        };
        let broken = |_| Err(KeyringError::Refused { why: "the conversation broke off".to_owned() });
        std::thread::scope(|scope| scope.spawn(talk).join()).unwrap_or_else(broken)
    }
}

/// For a wait that was too long.
fn silent<E>(_: E) -> KeyringError {
    KeyringError::Silent { seconds: PATIENCE.as_secs() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_bus_there_is_no_keyring() {
        for address in ["", "nonsense", "unix:path=/nowhere/at/all", "unix:abstract=kiwi-nobody-listens"] {
            let keyring = Keyring::new(address, Asking::Never);
            assert_eq!(keyring.get("x"), Err(KeyringError::Absent), "{address}");
        }
    }

    #[test]
    fn a_bus_that_says_nothing_is_not_waited_for_for_ever() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("bus");
        let _listener = std::os::unix::net::UnixListener::bind(&path).expect("listener");
        let keyring = Keyring::new(format!("unix:path={}", path.display()), Asking::Never);
        let begun = std::time::Instant::now();
        assert_eq!(keyring.get("x"), Err(KeyringError::Silent { seconds: PATIENCE.as_secs() }));
        assert!(begun.elapsed() < PATIENCE * 2);
    }
}
