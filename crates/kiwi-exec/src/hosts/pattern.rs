//! A host on a list, as manifests write it.

use reqwest::Url;
use std::str::FromStr;

use super::net::Net;
use crate::error::ExecError;

/// A host, or hosts, on a list: `name`, `*.suffix`, an address, or a network such as `10.0.0.0/8`; each may end in
/// `:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    hosts: Hosts,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    Name(String),
    Below(String),
    Net(Net),
}

impl HostPattern {
    /// Whether it lists the host by name.
    pub(crate) fn names(&self, host: &str, port: u16) -> bool {
        let is_listed = match &self.hosts {
            Hosts::Name(name) => host == name,
            Hosts::Below(suffix) => host
                .strip_suffix(suffix.as_str())
                .is_some_and(|front| front.len() > 1 && front.ends_with('.')),
            Hosts::Net(_) => false,
        };
        is_listed && self.takes(port)
    }

    /// The network it lists, for this port.
    pub(crate) fn net(&self, port: u16) -> Option<Net> {
        match self.hosts {
            Hosts::Net(net) if self.takes(port) => Some(net),
            _ => None,
        }
    }

    fn takes(&self, port: u16) -> bool {
        self.port.is_none_or(|own| own == port)
    }
}

impl FromStr for HostPattern {
    type Err = ExecError;

    fn from_str(text: &str) -> Result<Self, ExecError> {
        read(text).ok_or_else(|| ExecError::BadHost { pattern: text.to_owned() })
    }
}

fn read(text: &str) -> Option<HostPattern> {
    let (host, port) = split(text)?;
    let port = match port {
        Some(port) => Some(port.parse().ok().filter(|port| *port != 0)?),
        None => None,
    };
    let hosts = if let Some(net) = Net::read(host) {
        Hosts::Net(net)
    } else if let Some(suffix) = host.strip_prefix("*.") {
        Hosts::Below(name(suffix).filter(|suffix| Net::read(suffix).is_none())?)
    } else {
        let name = name(host)?;
        Net::read(&name).map_or(Hosts::Name(name), Hosts::Net)
    };
    Some(HostPattern { hosts, port })
}

/// Host and port; an IPv6 address with a port stands in brackets.
fn split(text: &str) -> Option<(&str, Option<&str>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        return if rest.is_empty() {
            Some((host, None))
        } else {
            Some((host, Some(rest.strip_prefix(':')?)))
        };
    }
    match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') => Some((host, Some(port))),
        _ => Some((text, None)),
    }
}

/// A name as addresses have it: in lowercase, in ASCII, without a last dot.
fn name(text: &str) -> Option<String> {
    if text.contains(|c: char| c.is_whitespace() || "*@/\\?#:%".contains(c)) {
        return None;
    }
    let url = Url::parse(&format!("http://{text}/")).ok()?;
    let host = url.host_str()?.trim_end_matches('.');
    (!host.is_empty()).then(|| host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> HostPattern {
        text.parse().unwrap()
    }

    #[test]
    fn names_and_suffixes_are_listed() {
        for (text, host, port, expected) in [
            ("api.example.org", "api.example.org", 443, true),
            ("API.Example.ORG.", "api.example.org", 443, true),
            ("api.example.org", "example.org", 443, false),
            ("api.example.org", "xapi.example.org", 443, false),
            ("api.example.org:8443", "api.example.org", 8443, true),
            ("api.example.org:8443", "api.example.org", 443, false),
            ("bücher.example", "xn--bcher-kva.example", 443, true),
            ("*.example.org", "a.example.org", 443, true),
            ("*.example.org", "a.b.example.org", 443, true),
            ("*.example.org", "example.org", 443, false),
            ("*.example.org", ".example.org", 443, false),
            ("*.example.org", "badexample.org", 443, false),
            ("*.example.org:80", "a.example.org", 443, false),
            ("localhost", "localhost", 80, true),
        ] {
            assert_eq!(pattern(text).names(host, port), expected, "{text} {host}:{port}");
        }
    }

    #[test]
    fn addresses_and_networks_are_listed() {
        for (text, address, port, expected) in [
            ("127.0.0.1", "127.0.0.1", 80, true),
            ("127.0.0.1", "127.0.0.2", 80, false),
            ("127.1", "127.0.0.1", 80, true),
            ("127.0.0.1:8080", "127.0.0.1", 8080, true),
            ("127.0.0.1:8080", "127.0.0.1", 80, false),
            ("127.0.0.1", "::ffff:127.0.0.1", 80, true),
            ("::ffff:127.0.0.1", "127.0.0.1", 80, true),
            ("10.0.0.0/8", "10.255.1.1", 80, true),
            ("10.0.0.0/8", "11.0.0.1", 80, false),
            ("10.1.2.3/8", "10.9.9.9", 80, true),
            ("10.0.0.0/8:443", "10.0.0.1", 443, true),
            ("10.0.0.0/8:443", "10.0.0.1", 80, false),
            ("0.0.0.0/0", "192.168.1.1", 80, true),
            ("0.0.0.0/0", "::1", 80, false),
            ("::1", "::1", 80, true),
            ("[::1]", "::1", 80, true),
            ("[::1]:80", "::1", 80, true),
            ("[::1]:80", "::1", 81, false),
            ("fc00::/7", "fd12::1", 80, true),
            ("[fc00::/7]:80", "fd12::1", 80, true),
            ("fc00::/7", "fe80::1", 80, false),
        ] {
            let covers = pattern(text).net(port).is_some_and(|net| net.covers(address.parse().unwrap()));
            assert_eq!(covers, expected, "{text} {address}:{port}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in [
            "",
            "*",
            "*.",
            "*.*.org",
            "a*.org",
            "a b",
            "http://a",
            "a/b",
            "a:",
            "a:x",
            "a:0",
            "a:99999",
            "u@a",
            "10.0.0.0/33",
            "[::1",
            "[::1]80",
            "*.10.0.0.1",
            "::/129",
            "a?b",
            "%61",
        ] {
            let error = text.parse::<HostPattern>().unwrap_err();
            assert!(error.to_string().contains("allow_hosts"), "{text}: {error}");
        }
    }
}
