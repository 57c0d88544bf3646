//! Where a request goes, and how messages show it.

use reqwest::Url;
use std::path::Path;
use std::sync::Arc;

use crate::error::ExecError;

/// An address that can be asked.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub url: Url,
    /// The socket that is asked instead of the address's host.
    pub socket: Option<Arc<Path>>,
}

impl Target {
    /// Reads what a manifest gives: `http`, `https` or a `unix:` socket.
    pub fn given(text: &str) -> Result<Self, ExecError> {
        let Some(rest) = text.strip_prefix("unix:") else {
            return Ok(Self { url: parse(text)?, socket: None });
        };
        let (socket, path) = rest
            .split_once(":/")
            .filter(|(socket, _)| socket.starts_with('/') && !socket.contains('\0'))
            .ok_or_else(|| bad_url(text, "a socket is written `unix:/path/of/socket:/path`".into()))?;
        let url = parse(&format!("http://localhost/{path}"))?;
        Ok(Self { url, socket: Some(Path::new(socket).into()) })
    }

    /// Where an answer's `Location` leads.
    pub fn join(&self, location: &str) -> Result<Self, ExecError> {
        let url = self.url.join(location).map_err(|error| bad_url(location, error.to_string()))?;
        let url = parse(url.as_str())?;
        let stays = url.origin() == self.url.origin();
        Ok(Self { url, socket: self.socket.clone().filter(|_| stays) })
    }

    /// Whether both are one and the same service.
    pub fn is_beside(&self, other: &Self) -> bool {
        self.socket == other.socket && self.url.origin() == other.url.origin()
    }

    /// Host and port, or the socket.
    pub fn place(&self) -> String {
        if let Some(socket) = &self.socket {
            return format!("unix:{}", socket.display());
        }
        let port = self.url.port_or_known_default().unwrap_or_default();
        format!("{}:{port}", self.url.host_str().unwrap_or_default())
    }

    pub fn is_secure(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// The address as messages show it: what may hold a secret is left out.
    pub fn shown(&self) -> String {
        let path = self.url.path();
        match &self.socket {
            Some(socket) => format!("unix:{}:{path}", socket.display()),
            None => shown(&self.url),
        }
    }
}

fn parse(text: &str) -> Result<Url, ExecError> {
    let url = Url::parse(text).map_err(|error| bad_url(text, error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad_url(text, format!("`{}` is neither http nor https", url.scheme())));
    }
    // Addresses are logged and shown; what stands in them is no secret any more.
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad_url(&shown(&url), "it holds a user name or a password".into()));
    }
    Ok(url)
}

fn bad_url(url: &str, why: String) -> ExecError {
    // What stands before an `@` or behind a question mark may be a secret.
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let url = url.rsplit('@').next().unwrap_or_default();
    ExecError::BadUrl { url: url.to_owned(), why }
}

fn shown(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
}

/// Fields as a form has them, which is as a query has them.
pub(super) fn encode<K: AsRef<str>, V: AsRef<str>>(fields: &[(K, V)]) -> String {
    let encoded = Url::parse_with_params("http://form", fields);
    encoded.ok().and_then(|url| url.query().map(str::to_owned)).unwrap_or_default()
}
