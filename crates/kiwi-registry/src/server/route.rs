//! What an address means.

use axum::http::Method;
use kiwi_model::{Digest, ToolId, Version};
use percent_encoding::percent_decode_str;

use crate::error::RegistryError;

/// A longer version is none.
const LONGEST_VERSION: usize = 128;

/// One address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    Status,
    Whoami,
    Search,
    Resolve(ToolId),
    Tool(ToolId),
    Version(ToolId, Version),
    Yanked(ToolId, Version),
    MissingBlobs,
    Blob(Digest),
    Lockfiles(String),
    Lockfile(String, String),
    Tokens,
    Token(String),
    Namespace(String),
    Owner(String, String),
    OpenApi,
    Metrics,
}

impl Route {
    /// Reads a path.
    pub fn parse(path: &str) -> Result<Self, RegistryError> {
        let raw = path.strip_prefix('/').ok_or(RegistryError::NoRoute)?;
        let segments: Vec<String> = raw.split('/').map(decode).collect::<Result<_, _>>()?;
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        Ok(match segments.as_slice() {
            ["metrics"] => Self::Metrics,
            ["v1", "status"] => Self::Status,
            ["v1", "whoami"] => Self::Whoami,
            ["v1", "search"] => Self::Search,
            ["v1", "openapi.json"] => Self::OpenApi,
            ["v1", "resolve", id] => Self::Resolve(tool_id(id)?),
            ["v1", "tools", id] => Self::Tool(tool_id(id)?),
            ["v1", "tools", id, "versions", it] => Self::Version(tool_id(id)?, version(it)?),
            ["v1", "tools", id, "versions", it, "yanked"] => Self::Yanked(tool_id(id)?, version(it)?),
            ["v1", "blobs", "missing"] => Self::MissingBlobs,
            ["v1", "blobs", digest] => {
                Self::Blob(Digest::parse(digest).map_err(|error| RegistryError::bad(error.to_string()))?)
            }
            ["v1", "lockfiles", set] => Self::Lockfiles((*set).to_owned()),
            // A key has slashes of its own, written as they are or encoded.
            ["v1", "lockfiles", set, key @ ..] => Self::Lockfile((*set).to_owned(), key.join("/")),
            ["v1", "tokens"] => Self::Tokens,
            ["v1", "tokens", id] => Self::Token(token_id(id)?),
            ["v1", "namespaces", it] => Self::Namespace(name(it)?),
            ["v1", "namespaces", it, "owners", user] => Self::Owner(name(it)?, name(user)?),
            _ => return Err(RegistryError::NoRoute),
        })
    }

    /// The address with its variable parts named: what requests are counted by.
    pub const fn pattern(&self) -> &'static str {
        match self {
            Self::Status => "/v1/status",
            Self::Whoami => "/v1/whoami",
            Self::Search => "/v1/search",
            Self::Resolve(_) => "/v1/resolve/{id}",
            Self::Tool(_) => "/v1/tools/{id}",
            Self::Version(..) => "/v1/tools/{id}/versions/{version}",
            Self::Yanked(..) => "/v1/tools/{id}/versions/{version}/yanked",
            Self::MissingBlobs => "/v1/blobs/missing",
            Self::Blob(_) => "/v1/blobs/{digest}",
            Self::Lockfiles(_) => "/v1/lockfiles/{set}",
            Self::Lockfile(..) => "/v1/lockfiles/{set}/{key}",
            Self::Tokens => "/v1/tokens",
            Self::Token(_) => "/v1/tokens/{token_id}",
            Self::Namespace(_) => "/v1/namespaces/{name}",
            Self::Owner(..) => "/v1/namespaces/{name}/owners/{user}",
            Self::OpenApi => "/v1/openapi.json",
            Self::Metrics => "/metrics",
        }
    }

    /// The methods it answers.
    pub const fn methods(&self) -> &'static [Method] {
        match self {
            Self::Status
            | Self::Whoami
            | Self::Search
            | Self::Resolve(_)
            | Self::OpenApi
            | Self::Metrics
            | Self::Lockfiles(_) => &[Method::GET],
            Self::Tool(_) => &[Method::GET, Method::PATCH],
            Self::Version(..) | Self::Blob(_) | Self::Namespace(_) => &[Method::GET, Method::PUT],
            Self::Yanked(..) => &[Method::PUT],
            Self::MissingBlobs => &[Method::POST],
            Self::Lockfile(..) | Self::Owner(..) => &[Method::PUT, Method::DELETE],
            Self::Tokens => &[Method::GET, Method::POST],
            Self::Token(_) => &[Method::DELETE],
        }
    }

    /// The method a request is answered by: who asks only for the head is answered as who asks for all.
    pub fn method(&self, method: &Method) -> Result<Method, RegistryError> {
        let wanted = if *method == Method::HEAD { Method::GET } else { method.clone() };
        if self.methods().contains(&wanted) {
            return Ok(wanted);
        }
        let mut allowed: Vec<&str> = self.methods().iter().map(Method::as_str).collect();
        if allowed.contains(&"GET") {
            allowed.push("HEAD");
        }
        Err(RegistryError::Method { allowed: allowed.join(", ") })
    }
}

fn decode(segment: &str) -> Result<String, RegistryError> {
    let bad = || RegistryError::bad("the address is not encoded as addresses are");
    // The decoder leaves a lone `%` as it is; here it is a mistake.
    let mut rest = segment.as_bytes();
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        let digits = rest.get(at + 1..at + 3).ok_or_else(bad)?;
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(bad());
        }
        rest = rest.get(at + 3..).unwrap_or_default();
    }
    let text = percent_decode_str(segment).decode_utf8().map_err(|_| bad())?;
    if text.chars().any(char::is_control) { Err(bad()) } else { Ok(text.into_owned()) }
}

fn tool_id(text: &str) -> Result<ToolId, RegistryError> {
    ToolId::parse(text).map_err(|error| RegistryError::bad(error.to_string()))
}

fn version(text: &str) -> Result<Version, RegistryError> {
    let version = (text.len() <= LONGEST_VERSION).then(|| Version::parse(text).ok()).flatten();
    let version = version.ok_or_else(|| RegistryError::bad("this is no version: write it like `1.4.0`"))?;
    // Numbers are compared as numbers of a certain length.
    let is_long = |part: &str| part.bytes().all(|b| b.is_ascii_digit()) && part.parse::<u64>().is_err();
    if version.pre.as_str().split('.').any(|part| !part.is_empty() && is_long(part)) {
        return Err(RegistryError::bad("a number in this version is too large"));
    }
    Ok(version)
}

/// Not the token itself: whoever sends that by mistake does not get it back in a message.
fn token_id(text: &str) -> Result<String, RegistryError> {
    let is_one = text.len() == 16 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if is_one { Ok(text.to_owned()) } else { Err(RegistryError::bad("this is no id of a token")) }
}

fn name(text: &str) -> Result<String, RegistryError> {
    let is_one = (1..=128).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    if is_one { Ok(text.to_owned()) } else { Err(RegistryError::bad("this is no name")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_hostile_ones_refused() {
        let check = |path: &str, pattern: &str| {
            assert_eq!(Route::parse(path).map(|route| route.pattern()), Ok(pattern), "{path}");
        };
        check("/v1/status", "/v1/status");
        check("/v1/tools/a.b", "/v1/tools/{id}");
        check("/v1/tools/a%2Eb/versions/1.0.0-rc.1%2B5", "/v1/tools/{id}/versions/{version}");
        check("/v1/lockfiles/set/cat/a@1.0.0", "/v1/lockfiles/{set}/{key}");
        check("/v1/lockfiles/set/cat%2Fa%401.0.0", "/v1/lockfiles/{set}/{key}");
        for (path, is_known) in [
            ("/", false),
            ("/v2/status", false),
            ("/v1/status/", false),
            ("//v1/status", false),
            ("/v1/tools/%", true),
            ("/v1/tools/%zz", true),
            ("/v1/tools/%ff", true),
            ("/v1/tools/a%00", true),
            ("/v1/tools/..", true),
            ("/v1/tools/A", true),
            ("/v1/tools/a/versions/1.0", true),
            ("/v1/tools/a/versions/1.0.0-99999999999999999999999", true),
            ("/v1/blobs/sha256:0", true),
            ("/v1/namespaces/a%2F..", true),
        ] {
            let error = Route::parse(path).unwrap_err();
            assert_eq!(matches!(error, RegistryError::BadRequest { .. }), is_known, "{path}: {error}");
        }
    }

    #[test]
    fn other_methods_are_told_which_there_are() {
        assert_eq!(Route::Status.method(&Method::HEAD), Ok(Method::GET));
        let error = Route::Status.method(&Method::DELETE);
        assert_eq!(error, Err(RegistryError::Method { allowed: "GET, HEAD".into() }));
    }
}
