//! Lockfiles as values: frozen from a plan, compared in words, settled where two disagree.

mod compare;
mod difference;
mod freeze;
mod pins;
mod settle;

pub use compare::{compare, compare_environments};
pub use difference::{Difference, Field};
pub use freeze::freeze;
pub use pins::Pins;
pub use settle::{Side, settle};
