//! Hosts as permissions list them: names with wildcards, addresses and networks, each also with a port.

use std::net::IpAddr;

use super::glob::{Glob, contains, escape, meet};

/// A host, or hosts.
#[derive(Debug, Clone)]
pub(crate) struct HostSet {
    /// Over `host:port`; without a port, over every port.
    names: Glob,
    net: Option<Net>,
}

#[derive(Debug, Clone, Copy)]
struct Net {
    /// Width and bits of its addresses, highest first.
    width: u32,
    bits: u128,
    prefix: u32,
    port: Option<u16>,
}

impl HostSet {
    /// Reads `name`, `*.name`, `address`, `address/bits`, each also with `:port`.
    pub fn read(text: &str) -> Result<Self, String> {
        let text = text.to_lowercase();
        let (host, port) = split(&text);
        let host = host.trim_end_matches('.');
        let number = match port {
            None | Some("*") => None,
            Some(port) => Some(port.parse::<u16>().map_err(|_| format!("`{port}` is no port"))?),
        };
        let net = Net::read(host, number);
        let name = match (&net, host.strip_prefix("*.")) {
            (None, Some(below)) => format!("?*.{}", wild(below)),
            (None, None) => wild(host),
            (Some(_), _) => escape(host),
        };
        let port = number.map_or_else(|| "*".to_owned(), |port| port.to_string());
        Ok(Self { names: Glob::name(&format!("{name}:{port}"))?, net })
    }

    /// Whether all hosts of this are among those of `outer`.
    pub fn is_within(&self, outer: &[&Self]) -> Result<(), String> {
        if let Some(net) = self.net
            && outer.iter().filter_map(|outer| outer.net).any(|outer| outer.covers(&net))
        {
            return Ok(());
        }
        contains(outer.iter().map(|outer| &outer.names), &self.names).map_err(|witness| witness.to_string())
    }

    /// Whether some host is in both.
    pub fn meets(&self, other: &Self) -> bool {
        let nets = self.net.zip(other.net);
        nets.is_some_and(|(own, other)| own.covers(&other) || other.covers(&own))
            || meet(&self.names, &other.names).is_some()
    }
}

/// Of a name only `*` is wild.
fn wild(host: &str) -> String {
    host.split('*').map(escape).collect::<Vec<_>>().join("*")
}

fn split(text: &str) -> (&str, Option<&str>) {
    // A socket is a path, and has no port.
    if text.starts_with("unix:") {
        return (text, None);
    }
    if let Some((host, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return (host, rest.strip_prefix(':'));
    }
    match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') => (host, Some(port)),
        _ => (text, None),
    }
}

impl Net {
    fn read(text: &str, port: Option<u16>) -> Option<Self> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix.parse::<u32>().ok()?)),
            None => (text, None),
        };
        let (width, bits) = match address.parse::<IpAddr>().ok()?.to_canonical() {
            IpAddr::V4(address) => (32, u128::from(u32::from(address)) << 96),
            IpAddr::V6(address) => (128, u128::from(address)),
        };
        let prefix = prefix.unwrap_or(width);
        (prefix <= width).then_some(Self { width, bits, prefix, port })
    }

    fn covers(&self, inner: &Self) -> bool {
        let mask = u128::MAX.checked_shl(128 - self.prefix).unwrap_or(0);
        self.width == inner.width
            && self.prefix <= inner.prefix
            && self.bits & mask == inner.bits & mask
            && (self.port.is_none() || self.port == inner.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_lie_within_others() {
        let set = |text: &str| HostSet::read(text).unwrap();
        for (inner, outer, expected) in [
            ("api.example.org", "api.example.org", true),
            ("API.example.org.", "api.example.org", true),
            ("api.example.org:443", "api.example.org", true),
            ("api.example.org", "api.example.org:443", false),
            ("api.example.org", "*.example.org", true),
            ("a.b.example.org", "*.example.org", true),
            ("example.org", "*.example.org", false),
            (".example.org", "*.example.org", false),
            ("evilexample.org", "*.example.org", false),
            ("*.b.example.org", "*.example.org", true),
            ("*.example.org", "*.b.example.org", false),
            ("anything.test", "*", true),
            ("10.1.2.3", "10.0.0.0/8", true),
            ("10.1.2.3:80", "10.0.0.0/8", true),
            ("11.1.2.3", "10.0.0.0/8", false),
            ("10.0.0.0/8", "10.0.0.0/16", false),
            ("[::1]:80", "::1", true),
            ("::ffff:10.0.0.1", "10.0.0.0/8", true),
            ("10.1.2.3", "*", true),
            ("unix:/run/x.sock", "unix:/run/x.sock", true),
            ("unix:/run/y.sock", "unix:/run/x.sock", false),
        ] {
            assert_eq!(set(inner).is_within(&[&set(outer)]).is_ok(), expected, "{inner} in {outer}");
        }
        assert!(set("*.org").meets(&set("evil.*")) && !set("a.org").meets(&set("b.org")));
        assert!(HostSet::read("a.org:http").is_err());
    }
}
