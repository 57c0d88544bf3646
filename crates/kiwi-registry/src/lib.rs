//! Sharing tools: what a registry and its clients say to each other, and both of them.
//!
//! **Owns** the protocol (`/v1`, JSON), the client that publishes and fetches, the cache of what was fetched, and the server with
//! its two stores, SQLite and PostgreSQL.
//!
//! **Deliberately absent**: archives. A version is a document and its files, each known by its hash, so nothing is ever unpacked;
//! and trust: neither side believes a hash that it did not compute.
//!
//! Read first: [`protocol`] (what is said), [`Registry`] (who asks), [`Server`] (who answers).

mod client;
mod error;
#[doc(hidden)]
pub mod measured;
pub mod protocol;
mod server;
mod store;

pub use client::{Cache, ClientError, Fetched, Fetching, KeptBlob, Registry};
pub use error::RegistryError;
pub use server::{Limits, Server, ServerOptions, Told};
