//! The leash on other MCP servers: one pooled, pinned and policed connection to each.
//!
//! **Owns** the list of servers ([`Registry`]), what each of them was seen to offer and what a person agreed to
//! ([`Book`]), the connections ([`Pool`]), and the three of them together ([`Upstreams`]); and messages over byte streams
//! ([`stream`]), which Kiwi's own face to clients uses as well.
//!
//! **Deliberately absent**: policy about callers (the gate has decided before anything is asked of a server), starting
//! processes and opening connections (both come from `kiwi-exec`), and any type of the protocol library: what crosses
//! this crate's border is JSON and the types below.
//!
//! Read first: [`Server`] (who), [`Definition`] and [`Standing`] (what, and whether a person agreed to it), [`Relay`]
//! (what a server may say and ask while it works).

mod answer;
mod book;
mod client;
mod definition;
mod edit;
mod error;
#[doc(hidden)]
pub mod fuzzed;
mod import;
mod install;
mod pool;
mod registry;
mod relay;
mod scan;
mod server;
pub mod stream;
mod upstreams;

pub use answer::Answer;
pub use book::{Book, Choice, Difference, Noted, Package, Page, Standing, Why};
pub use client::{Client, Places, Scope};
pub use definition::{Definition, Listing};
pub use edit::unified;
pub use error::McpError;
pub use import::{Imported, Origin, Skipped, Taken, import};
pub use install::{Done, Installation, Program};
pub use pool::{
    Authorize, Change, Connection, Identity, Lookup, OnChange, Pool, PoolState, StateKind, Surroundings,
};
pub use registry::Registry;
pub use relay::{Asked, Capability, Refusal, Relay, RelayFuture, Silent};
pub use scan::{Finding, Suspicion, scan, scan_text};
pub use server::{HttpAuth, Reach, Server, ServerName, ServerNameError};
pub use upstreams::{MayContact, Offer, Upstreams, Wanted};
