//! Who: one entry of `mcp_registry.yaml`, as it holds.

use kiwi_model::{Isolation, Space};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// The name of a server: the first segment of its tools' ids.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServerName(String);

/// Why a text is no name of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerNameError {
    /// It has other characters.
    #[error("`{0}` is not a server's name: expected lowercase letters, digits, `_` and `-`, a letter first")]
    Spelling(String),
    /// Its tools would look like the system's.
    #[error("`{0}` belongs to the system: no server can have that name")]
    Reserved(String),
}

impl ServerName {
    /// The longest name.
    const MOST: usize = 48;

    /// Reads a name.
    pub fn parse(name: &str) -> Result<Self, ServerNameError> {
        let mut bytes = name.bytes();
        let is_spelt = bytes.next().is_some_and(|b| b.is_ascii_lowercase())
            && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
            && name.len() <= Self::MOST;
        if !is_spelt {
            return Err(ServerNameError::Spelling(name.chars().take(Self::MOST).collect()));
        }
        if kiwi_model::SYSTEM_NAMESPACES.contains(&name) {
            return Err(ServerNameError::Reserved(name.to_owned()));
        }
        Ok(Self(name.to_owned()))
    }

    /// The name as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for ServerName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<String> for ServerName {
    type Error = ServerNameError;
    fn try_from(name: String) -> Result<Self, ServerNameError> {
        Self::parse(&name)
    }
}

impl From<ServerName> for String {
    fn from(name: ServerName) -> Self {
        name.0
    }
}

/// How a server is reached. Values may name variables (`${TOKEN}`); they are looked up when it is contacted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// A program that speaks over its standard streams.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables it gets beside the usual ones.
        env: BTreeMap<String, String>,
        /// Where it starts; the project otherwise.
        cwd: Option<String>,
    },
    /// A streamable HTTP endpoint.
    Http {
        /// Where.
        url: String,
        /// Headers of every request.
        headers: BTreeMap<String, String>,
        /// How it knows who asks.
        auth: HttpAuth,
    },
}

impl Reach {
    /// Whether a person has to give access first.
    pub fn uses_oauth(&self) -> bool {
        matches!(self, Self::Http { auth: HttpAuth::Oauth, .. })
    }
}

/// How an HTTP server knows who asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HttpAuth {
    /// By its headers, or not at all.
    #[default]
    None,
    /// By OAuth 2.1, as the protocol has it.
    Oauth,
}

/// One upstream server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its name.
    pub name: ServerName,
    /// Whose file names it.
    pub space: Space,
    /// How it is reached.
    pub reach: Reach,
    /// One line about it.
    pub description: Option<String>,
    /// How tightly its process is held.
    pub isolation: Isolation,
    /// How long it may be of no use before it is stopped.
    pub idle_timeout: Duration,
    /// How long it may take to start and to list its tools.
    pub start_timeout: Duration,
    /// How long one call may take.
    pub timeout: Duration,
    /// How long its list of tools is good for.
    pub schema_ttl: Duration,
    /// Whether what it says in favour of its own tools (`readOnlyHint`) counts.
    pub trusts_annotations: bool,
}
