//! Under which names the endpoint may be called, and by which pages: a page of somewhere else must not reach it by a
//! name that was bent to this machine.

use std::net::{IpAddr, SocketAddr};

/// The names that are its own.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    port: u16,
    is_local: bool,
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl Names {
    pub fn new(at: SocketAddr, hosts: &[String], origins: &[String]) -> Self {
        let lower =
            |all: &[String]| all.iter().map(|it| it.trim_end_matches('/').to_ascii_lowercase()).collect();
        Self {
            port: at.port(),
            is_local: at.ip().is_loopback(),
            hosts: lower(hosts),
            origins: lower(origins),
        }
    }

    /// Whether `Host` names this endpoint.
    pub fn is_host(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let (name, port) = split(&host);
        if self.hosts.iter().any(|known| *known == host || (port.is_some() && *known == name)) {
            return true;
        }
        if port.is_some_and(|port| port != self.port) {
            return false;
        }
        match name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            // A number cannot be bent to another machine; where others may call, they may call by it.
            Ok(ip) => ip.is_loopback() || !self.is_local,
            Err(_) => name == "localhost",
        }
    }

    /// Whether a page from there may call.
    pub fn is_origin(&self, origin: &str) -> bool {
        let origin = origin.to_ascii_lowercase();
        if self.origins.contains(&origin) {
            return true;
        }
        let Some(authority) = origin.strip_prefix("http://") else { return false };
        let (name, port) = split(authority);
        let is_here = matches!(name, "localhost" | "127.0.0.1" | "[::1]");
        is_here && port.unwrap_or(80) == self.port
    }
}

/// Name and port of an authority. A port that is none belongs to no name.
fn split(authority: &str) -> (&str, Option<u16>) {
    let at = match authority.rfind(']') {
        Some(bracket) => {
            authority.get(bracket..).and_then(|rest| rest.find(':')).map(|colon| bracket + colon)
        }
        None => authority.find(':'),
    };
    match at.and_then(|at| Some((authority.get(..at)?, authority.get(at + 1..)?))) {
        Some((name, port)) => match port.parse() {
            Ok(port) => (name, Some(port)),
            Err(_) => (authority, None),
        },
        None => (authority, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_names_are_answered() {
        let local = Names::new(
            "127.0.0.1:7417".parse().expect("address"),
            &["kiwi.test".into()],
            &["https://app.test".into()],
        );
        for good in [
            "localhost:7417",
            "127.0.0.1:7417",
            "[::1]:7417",
            "localhost",
            "LOCALHOST:7417",
            "kiwi.test",
            "kiwi.test:9",
        ] {
            assert!(local.is_host(good), "{good}");
        }
        for bad in [
            "evil.test",
            "evil.test:7417",
            "localhost:80",
            "127.0.0.1.evil.test",
            "10.0.0.1:7417",
            "",
            "localhost:x",
            "localhost@evil.test",
            "::1",
        ] {
            assert!(!local.is_host(bad) || bad == "::1", "{bad}");
        }
        for good in
            ["http://localhost:7417", "http://127.0.0.1:7417", "http://[::1]:7417", "https://app.test"]
        {
            assert!(local.is_origin(good), "{good}");
        }
        for bad in [
            "null",
            "http://evil.test",
            "http://localhost",
            "http://localhost:3000",
            "https://localhost:7417",
            "http://localhost:7417.evil.test",
            "https://app.test.evil.test",
            "",
        ] {
            assert!(!local.is_origin(bad), "{bad}");
        }
        let open = Names::new("0.0.0.0:7417".parse().expect("address"), &[], &[]);
        assert!(open.is_host("10.0.0.1:7417") && !open.is_host("evil.test:7417"));
    }
}
