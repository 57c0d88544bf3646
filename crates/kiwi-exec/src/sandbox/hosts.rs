//! Which hosts a tool declared, and how far that goes.

use std::net::IpAddr;

use crate::error::ExecError;
use crate::hosts::{HostPattern, plain};

/// The declared hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hosts(Vec<HostPattern>);

/// How a host may be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// At public addresses only, whatever its name is resolved to.
    Public,
    /// Wherever it is: it was declared as an address, or as this very machine.
    Anywhere,
}

impl Hosts {
    /// Reads declarations.
    pub fn parse(declared: &[String]) -> Result<Self, ExecError> {
        declared.iter().map(|text| text.parse()).collect::<Result<_, _>>().map(Self)
    }

    /// Whether a host was declared, and how far that goes.
    pub fn reach(&self, host: &str, port: u16) -> Option<Reach> {
        let name = host.trim_end_matches('.').to_ascii_lowercase();
        let address: Option<IpAddr> = name.parse().ok().map(plain);
        let is_listed = |pattern: &HostPattern| match address {
            Some(address) => pattern.net(port).is_some_and(|net| net.covers(address)),
            None => pattern.names(&name, port),
        };
        self.0.iter().any(is_listed).then_some(match address {
            Some(_) => Reach::Anywhere,
            None if name == "localhost" => Reach::Anywhere,
            None => Reach::Public,
        })
    }
}

/// A host and its port, if one is given. An IPv6 address with a port is in brackets.
pub fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    if let Some((host, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let port = rest.strip_prefix(':').map(str::parse).transpose().ok()?;
        return (port.is_some() || rest.is_empty()).then_some((host, port));
    }
    match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') => Some((host, Some(port.parse().ok()?))),
        _ => Some((text, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_declared_hosts_are_reached() {
        let declared = ["example.org", "*.cdn.net:443", "127.0.0.1:8080", "localhost", "[::1]:9"];
        let hosts = Hosts::parse(&declared.map(str::to_owned)).unwrap();
        let public = Some(Reach::Public);
        for (host, port, reach) in [
            ("example.org", 80, public),
            ("EXAMPLE.org.", 443, public),
            ("www.example.org", 80, None),
            ("example.org.evil.net", 80, None),
            ("a.cdn.net", 443, public),
            ("a.b.cdn.net", 443, public),
            ("cdn.net", 443, None),
            ("xcdn.net", 443, None),
            ("a.cdn.net", 80, None),
            ("127.0.0.1", 8080, Some(Reach::Anywhere)),
            ("::ffff:127.0.0.1", 8080, Some(Reach::Anywhere)),
            ("127.0.0.1", 8081, None),
            ("localhost", 1, Some(Reach::Anywhere)),
            ("::1", 9, Some(Reach::Anywhere)),
            ("", 80, None),
        ] {
            assert_eq!(hosts.reach(host, port), reach, "{host}:{port}");
        }
        for bad in ["", "*", "*.", "http://x", "a b", "x:port", "x/y", "*.*.x"] {
            assert!(Hosts::parse(&[bad.to_owned()]).is_err(), "{bad}");
        }
    }
}
