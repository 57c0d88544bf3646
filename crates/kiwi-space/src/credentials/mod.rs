//! Credentials: named secrets of the user, encrypted at rest, never a project's.
//!
//! One file, `credentials/store.age` in the user space, encrypted to the identity in `credentials/identity.txt`; both
//! can be read by their owner alone. Whoever may read the user's files may read them: what this protects against is a
//! copy of the store alone, a backup, a folder that is shared by mistake, and a glance at the file.

mod credential;
mod seal;
mod store;

pub use credential::{Credential, Refresh};
pub use store::Credentials;
