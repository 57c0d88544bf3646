//! Lockfiles on disk: found straight, never lost, never half, and listed by an index that can be thrown away.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]

mod broken;
#[path = "../common/mod.rs"]
mod common;
mod files;
mod index;
mod prune;
mod store;
mod together;
