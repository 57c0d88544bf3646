//! Who keeps the key of the store, where it is not a file: this crate opens no connections, so somebody hands one in.

use kiwi_model::Secret;

/// Keeps keys by name.
pub trait KeyKeeper: std::fmt::Debug + Send + Sync {
    /// The key of this name.
    fn get(&self, name: &str) -> Result<Option<Secret>, KeeperProblem>;
    /// Keeps a key under this name, in place of what was there.
    fn put(&self, name: &str, key: &Secret) -> Result<(), KeeperProblem>;
    /// Forgets the key of this name.
    fn forget(&self, name: &str) -> Result<(), KeeperProblem>;
}

/// Why a keeper did not do what it was asked. Each reads on from "the desktop's keyring, which …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeeperProblem {
    /// The user does not want one.
    #[error("is turned off in the configuration")]
    Off,
    /// There is none.
    #[error("cannot be reached from here")]
    Absent,
    /// It is locked.
    #[error("is locked")]
    Locked,
    /// It says nothing.
    #[error("did not answer within {seconds} s")]
    Silent {
        /// How long was waited.
        seconds: u64,
    },
    /// It is there, open, and does not have the key.
    #[error("no longer has it")]
    Gone,
    /// It answered with an error.
    #[error("refused: {why}")]
    Refused {
        /// In its own words.
        why: String,
    },
}

impl KeeperProblem {
    /// Whether there simply is no keeper, so that a file has to do.
    pub(super) fn is_absence(&self) -> bool {
        matches!(self, Self::Off | Self::Absent)
    }

    /// What can be done about it.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::Off => {
                "set `keyring = \"auto\"` under `[credentials]` in the user's `config/kiwi.toml`; nothing is lost"
            }
            Self::Absent => {
                "log in to the desktop whose keyring has it, with DBUS_SESSION_BUS_ADDRESS set; nothing is lost"
            }
            Self::Locked => {
                "unlock it: log in to the desktop or open the program that manages its passwords; nothing is lost"
            }
            Self::Silent { .. } | Self::Refused { .. } => {
                "see to the desktop's keyring, or start its service anew; nothing is lost"
            }
            Self::Gone => {
                "bring its item \"Kiwi credential store\" back, or remove the folder `credentials` and store the secrets again"
            }
        }
    }
}

/// Where nobody keeps keys.
#[derive(Debug, Clone)]
pub struct Nobody(
    /// Why not.
    pub KeeperProblem,
);

impl KeyKeeper for Nobody {
    fn get(&self, _: &str) -> Result<Option<Secret>, KeeperProblem> {
        Err(self.0.clone())
    }

    fn put(&self, _: &str, _: &Secret) -> Result<(), KeeperProblem> {
        Err(self.0.clone())
    }

    fn forget(&self, _: &str) -> Result<(), KeeperProblem> {
        Err(self.0.clone())
    }
}
