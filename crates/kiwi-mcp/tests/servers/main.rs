//! Servers of every kind, behind the pool: one test binary, because each would hold all that the helpers use.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and needs to know where the real components are"
)]

#[path = "../support/mod.rs"]
mod support;

mod access;
mod chaos;
mod conformance;
mod pool;
mod real;
mod revision;
mod web;
