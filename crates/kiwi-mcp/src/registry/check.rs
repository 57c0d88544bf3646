//! Whether an entry can mean something, and nothing that would give a secret away.

use url::{Host, Url};

use super::file::Wrong;
use crate::server::{HttpAuth, Reach};

/// Checks how a server is reached.
pub(super) fn reach(reach: &Reach) -> Result<(), Wrong> {
    match reach {
        Reach::Stdio { command, args, env, cwd } => {
            text("command", command)?;
            if command.trim().is_empty() {
                return Err(Wrong::new("command", "`command` is empty"));
            }
            for arg in args {
                text("args", arg)?;
            }
            for (name, value) in env {
                if name.is_empty() || name.contains('=') || name.contains('\0') {
                    let shown = name.escape_debug();
                    return Err(Wrong::new("env", format!("`{shown}` cannot be the name of a variable")));
                }
                text("env", value)?;
            }
            cwd.as_deref().map_or(Ok(()), |cwd| text("cwd", cwd))
        }
        Reach::Http { url, headers, auth } => {
            for (name, value) in headers {
                header(name, value)?;
            }
            address(url, !headers.is_empty() || *auth != HttpAuth::None)
        }
    }
}

fn text(key: &'static str, value: &str) -> Result<(), Wrong> {
    if value.contains('\0') {
        return Err(Wrong::new(key, format!("`{key}` holds a NUL character")));
    }
    Ok(())
}

fn header(name: &str, value: &str) -> Result<(), Wrong> {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.bytes().all(is_token) {
        let shown = name.escape_debug();
        return Err(Wrong::new("headers", format!("`{shown}` cannot be the name of a header")));
    }
    if value.chars().any(|c| c.is_control() && c != '\t') {
        return Err(Wrong::new("headers", format!("the header `{name}` holds control characters")));
    }
    Ok(())
}

/// An address must say itself whom it reaches: what is agreed to is the address, not the value of a variable.
fn address(url: &str, carries_secrets: bool) -> Result<(), Wrong> {
    let wrong = |problem: &str| Wrong::new("url", format!("`{}` {problem}", url.escape_debug()));
    let literal = url.split_once("://").map_or("", |(_, rest)| rest);
    if literal.split(['/', '?', '#']).next().unwrap_or_default().contains("${") {
        return Err(wrong("must name its host itself, not by a variable"));
    }
    let parsed = Url::parse(url).map_err(|error| wrong(&format!("is no address: {error}")))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(wrong("is no address: expected `http://` or `https://`"));
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err(Wrong::new("url", "`url` holds a user or password: use `headers`"));
    }
    if parsed.scheme() == "http" && carries_secrets && !is_loopback(&parsed) {
        return Err(wrong("would send `headers` or `auth` unencrypted: use `https://`"));
    }
    Ok(())
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => {
            name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost")
        }
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
