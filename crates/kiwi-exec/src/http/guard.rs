//! The guard in front of every connection: of the first address, of every redirect and of every repetition.
//!
//! A host is judged twice: by name before anything is looked up, and by the addresses its name stands for. Connections
//! go to the addresses that were judged and to no others, so a name cannot change its mind in between.

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use super::lookup::Lookup;
use super::reach::Reach;
use super::target::Target;
use crate::error::ExecError;
use crate::hosts::Net;
use crate::hosts::internal;

/// How a host may be reached: which addresses its name may stand for. Connections are shared between requests of one
/// route only, so that one that may go further never opens a door for one that may not.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Route {
    /// Any address.
    Anywhere,
    /// Addresses outside.
    Outside,
    /// This machine.
    Here,
    /// These networks, and addresses outside where `or_outside` says so.
    Within { nets: Vec<Net>, or_outside: bool },
    /// A socket of this machine.
    Socket(Arc<Path>),
}

/// Judges the hosts of one request.
#[derive(Debug)]
pub(super) struct Guard<'a> {
    reach: &'a Reach,
    /// Host and port that the manifest names.
    named: Option<(String, u16)>,
}

impl<'a> Guard<'a> {
    pub fn new(reach: &'a Reach, first: &Target) -> Self {
        let is_named = reach.is_named && first.socket.is_none();
        Self { reach, named: is_named.then(|| (host(first), port(first))) }
    }

    /// The way to a target, if there is one.
    pub fn route(&self, target: &Target) -> Result<Route, ExecError> {
        if let Some(socket) = &target.socket {
            let why = "a socket must be named by the manifest, without templates";
            let shown = || format!("unix:{}", socket.display());
            return if self.reach.is_named {
                Ok(Route::Socket(Arc::clone(socket)))
            } else {
                Err(ExecError::HostRefused { host: shown(), address: None, why: why.into() })
            };
        }
        let (host, port) = (host(target), port(target));
        let patterns = self.reach.allow_hosts.as_deref().unwrap_or_default();
        if patterns.iter().any(|pattern| pattern.names(&host, port)) {
            return Ok(Route::Anywhere);
        }
        let nets: Vec<Net> = patterns.iter().filter_map(|pattern| pattern.net(port)).collect();
        let same_host = self.named.as_ref().is_some_and(|(named, _)| *named == host);
        let is_named = same_host && self.named.as_ref().is_some_and(|(_, named)| *named == port);
        let has_list = self.reach.allow_hosts.is_some();
        let address = host.parse::<IpAddr>().ok();
        if let Some(address) = address {
            if is_named || nets.iter().any(|net| net.covers(address)) {
                return Ok(Route::Anywhere);
            }
            if let Some(kind) = internal(address) {
                let why = format!("it is {kind} address");
                return Err(ExecError::HostRefused { host, address: Some(address), why });
            }
        }
        if has_list && !same_host && (nets.is_empty() || address.is_some()) {
            let why = "`allow_hosts` does not list it".into();
            return Err(ExecError::HostRefused { host, address: None, why });
        }
        Ok(match (is_named && host == "localhost", nets.is_empty()) {
            (true, _) => Route::Here,
            (_, true) => Route::Outside,
            (_, false) => Route::Within { nets, or_outside: !has_list || same_host },
        })
    }
}

fn host(target: &Target) -> String {
    let host = target.url.host_str().unwrap_or_default();
    host.trim_start_matches('[').trim_end_matches([']', '.']).to_owned()
}

fn port(target: &Target) -> u16 {
    target.url.port_or_known_default().unwrap_or_default()
}

impl Route {
    /// Why an address is not on this way, if it is not.
    fn objection(&self, address: IpAddr) -> Option<String> {
        let inside = || internal(address).map(|kind| format!("it resolves to {address}, {kind} address"));
        match self {
            Self::Anywhere | Self::Socket(_) => None,
            Self::Here if address.is_loopback() => None,
            Self::Here => Some(format!("it resolves to {address}, which is not this machine")),
            Self::Within { nets, .. } if nets.iter().any(|net| net.covers(address)) => None,
            Self::Outside | Self::Within { or_outside: true, .. } => inside(),
            Self::Within { .. } => Some(format!("it resolves to {address}, and `allow_hosts` lists neither")),
        }
    }
}

/// Looks names up for one route, and gives out addresses only when all of them are on it.
pub(super) struct Judged {
    pub lookup: Lookup,
    pub route: Route,
}

impl Resolve for Judged {
    fn resolve(&self, name: Name) -> Resolving {
        let (lookup, route) = (self.lookup.clone(), self.route.clone());
        Box::pin(async move {
            let addresses = lookup.addresses(name.as_str()).await?;
            for address in &addresses {
                if let Some(why) = route.objection(*address) {
                    let host = name.as_str().trim_end_matches('.').to_owned();
                    return Err(Refused { host, address: *address, why }.into());
                }
            }
            let addresses = addresses.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}

/// A refusal on its way through the library.
#[derive(Debug, Clone, thiserror::Error)]
#[error("`{host}` may not be contacted: {why}")]
pub(super) struct Refused {
    host: String,
    address: IpAddr,
    why: String,
}

impl Refused {
    pub fn error(&self) -> ExecError {
        let Self { host, address, why } = self.clone();
        ExecError::HostRefused { host, address: Some(address), why }
    }
}
