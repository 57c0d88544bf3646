//! Hosts and addresses: which are declared, and which belong to nobody outside.

mod internal;
mod net;
mod pattern;

pub(crate) use internal::{internal, plain};
pub(crate) use net::Net;
pub use pattern::HostPattern;
