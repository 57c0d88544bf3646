//! Credentials: named secrets of the user, encrypted at rest, never a project's.
//!
//! One file, `credentials/store.age` in the user space, encrypted to a key that the desktop's keyring keeps
//! ([`KeyKeeper`]), or where there is none the file `credentials/identity.txt`; their owner alone can read them. With
//! the key in a file, whoever may read the user's files may read the secrets: what it protects against then is a copy
//! of the store alone, a folder that is shared by mistake, and a glance. With the key in a keyring, a copy of all the
//! user's files is not enough either.

mod credential;
mod keeper;
mod place;
mod seal;
mod store;

pub use credential::{Credential, Refresh};
pub use keeper::{KeeperProblem, KeyKeeper, Nobody};
pub use store::Credentials;
