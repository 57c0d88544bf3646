//! From an id to something that can be run: resolve → verify → validate → merge → render.
//!
//! **Owns** the walk along executors, the comparison of identities, the judgement of each adjacent pair, the merged
//! configuration and its rendering with parameters; and what a frozen chain says about another.
//!
//! **Deliberately absent**: files, processes, clock, environment. Everything is read through the [`Catalog`] trait, so
//! the same functions serve folders, tests and a registry.
//!
//! Read first: [`Catalog`] and [`Tool`] (what goes in), [`plan`] and [`Plan`] (what comes out).

mod cache;
mod catalog;
mod container;
mod error;
mod http;
mod lock;
mod merge;
mod params;
mod pattern;
mod plan;
mod render;
mod resolve;
mod schema;
mod slips;
mod template;
mod upstream;
mod validate;
mod verify;

pub use cache::Cache;
pub use catalog::{Candidate, Catalog, Form, Identity, Signature, Tool};
pub use container::{ContainerCall, ImageBuild, Volume};
pub use error::{ChainError, FileChange, Mismatch, Requirement};
pub use http::{AuthCall, AuthScheme, HttpBody, HttpCall};
pub use lock::{Difference, Field, Pins, Side, compare, compare_environments, freeze, settle};
pub use merge::{Merged, Primitive, merge};
pub use params::read_assignment;
pub use plan::{Plan, plan};
pub use render::{Invocation, Limits, Needs, ProcessCall, invocation, needs};
pub use resolve::{MAX_LINKS, find, resolve, versions};
pub use schema::Caches;
pub use upstream::{UpstreamAction, UpstreamCall};
pub use validate::{Mode, Report, validate};
pub use verify::{changes, verify};
