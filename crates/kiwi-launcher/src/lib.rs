//! The launcher: a small resident process between Kiwi and a tool.
//!
//! **Owns** what Kiwi and its launcher say to each other ([`wire`], [`plan`]), and the whole life of a launcher
//! ([`main`]): the walls of a sandbox, limits, starting the tool, watching over it, ending everything it started.
//!
//! **Deliberately absent**: the C library and the standard library. On a virtual machine what a C library does before
//! `main` takes longer than everything the launcher does, and what is small is copied and ended quickly. So all of this
//! asks the kernel itself, and is built twice: into Kiwi, where `kiwi __launch` is the way in, and as a program of its own
//! (`src/program`), which Kiwi carries along and prefers. Absent as well: threads, a runtime, decisions.
//!
//! It must not trust the tool: the tool may kill it, stop it or fill its pipes, and Kiwi has an answer to each.
//!
//! In a sandbox the launcher is the first process itself ([`inside::early`]), also where its order is still to come
//! ([`inside::ahead`]). Where somebody has to stay outside, or somebody else builds the walls, there is a second one
//! ([`inside`]): a copy of the launcher, or, by `bwrap` or a container engine, the same program with another argument.
//!
//! Read first: [`wire::Launch`] (what is to be done), [`main`] (how), [`plan::Sandbox`] (behind which walls).
#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod ending;
pub mod folder;
mod group;
pub mod inside;
pub mod kernel;
mod life;
mod limits;
pub mod memory;
mod outside;
pub mod plan;
pub mod procfs;
mod roles;
mod settle;
pub mod spare;
mod start;
pub mod wire;
mod words;

pub use outside::{Contained, Engines, NoEngines};
pub use roles::{ARGUMENT, PROBE, main};
