//! The vocabulary every other room speaks.
//!
//! **Owns** ids, versions, spaces, manifests, permissions, chain links and record types; the strict YAML reader;
//! canonical JSON and the integrity computed from it.
//!
//! **Deliberately absent**: files, processes, sockets, the clock, the environment, randomness. Everything here is a
//! pure function of its arguments, so that a decision can be repeated anywhere and comes out the same.
//!
//! Read first: [`Manifest`] (what a tool says about itself), [`Integrity`] (who it is), [`Fault`] (how anything that
//! goes wrong is told to a person and to a program).

mod canonical;
mod checksum;
mod fault;
mod file;
mod id;
mod integrity;
mod language;
pub mod limit;
mod link;
pub mod lockfile;
pub mod manifest;
mod permission;
mod pin;
pub mod record;
mod secret;
mod slip;
mod space;
mod strict_json;
mod text;
mod version;
pub mod yaml;

pub use canonical::{CanonicalError, canonical, canonical_object};
pub use checksum::checksum;
pub use fault::{ErrorKind, Explain, Fault, Status};
pub use file::{Content, File, FileEntry};
pub use id::{IdError, SYSTEM_NAMESPACES, ToolId};
pub use integrity::{Digest, Hasher, Integrity, IntegrityError, integrity_of};
pub use language::Language;
pub use link::{Link, chain_hash};
pub use manifest::{Isolation, Manifest, ManifestError};
pub use permission::Permissions;
pub use pin::{Pin, PinError};
pub use secret::Secret;
pub use slip::meant;
pub use space::Space;
pub use strict_json::strict_json;
pub use text::{Piece, Text};
pub use version::{Prerelease, ToolRef, Version, VersionReq};
