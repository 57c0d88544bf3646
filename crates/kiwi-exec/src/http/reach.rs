//! Which hosts a request may contact, as its manifest says it.

use kiwi_model::Fault;
use std::sync::Arc;

use crate::hosts::HostPattern;

/// Whom a request may contact. By itself: every host outside, and nobody inside.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// Whether the manifest itself names the address's host, and no parameter has a say in it. Such a host may be
    /// `localhost` or an internal address, and needs no place on the list.
    pub is_named: bool,
    /// The only other hosts that may be contacted; these may be internal.
    pub allow_hosts: Option<Vec<HostPattern>>,
}

/// Says whether a host may be contacted: `name:port`, or `unix:` and the path of a socket. Asked before each connection.
pub type Permit = Arc<dyn Fn(&str) -> Result<(), Fault> + Send + Sync>;
