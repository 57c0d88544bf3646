//! `mcp_registry.yaml` as it may be written.

use kiwi_model::yaml::{self, Document};
use kiwi_model::{Isolation, Space};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::check;
use crate::error::McpError;
use crate::server::{HttpAuth, Reach, Server, ServerName};

/// The key under which the servers are.
pub(crate) const KEY: &str = "mcps";

const IDLE_TIMEOUT: u64 = 300;
const TIMEOUT: u64 = 60;
const START_TIMEOUT: u64 = 30;
const SCHEMA_TTL: u64 = 3600;
/// A year: more is a mistake.
const MOST_SECONDS: u64 = 31_536_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a map with the one key `mcps`")]
struct File {
    mcps: Option<BTreeMap<String, Entry>>,
}

/// How a server is reached, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Type {
    Stdio,
    Http,
}

/// One entry; what is left out has its usual value.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a map that says how the server is reached")]
struct Entry {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<Type>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    env: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    auth: Option<HttpAuth>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    isolation: Option<Isolation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idle_timeout: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_timeout: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema_ttl: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trust_annotations: Option<bool>,
}

/// What is wrong with an entry, and under which of its keys.
pub(super) struct Wrong {
    pub(super) key: &'static str,
    pub(super) problem: String,
}

impl Wrong {
    pub(super) fn new(key: &'static str, problem: impl Into<String>) -> Self {
        Self { key, problem: problem.into() }
    }
}

/// Reads a file of a space.
pub(super) fn read(
    bytes: &[u8],
    space: Space,
    path: &Path,
) -> Result<BTreeMap<ServerName, Server>, McpError> {
    let bad = |problem: String| McpError::BadRegistry { file: path.to_owned(), problem };
    if says_nothing(bytes) {
        return Ok(BTreeMap::new());
    }
    let document = yaml::parse(bytes).map_err(|error| {
        let hint = error.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
        bad(format!("line {}, column {}: {}{hint}", error.place.line, error.place.column, error.message))
    })?;
    let at = |pointer: &str, problem: &str| {
        let place = document.place(pointer);
        bad(format!("line {}, column {}: {problem}", place.line, place.column))
    };
    let file = typed(&document).map_err(|(pointer, problem)| at(&pointer, &problem))?;
    let mut servers = BTreeMap::new();
    for (name, entry) in file.mcps.unwrap_or_default() {
        let pointer = format!("/{KEY}/{}", escape(&name));
        let known = ServerName::parse(&name).map_err(|error| at(&pointer, &error.to_string()))?;
        let server = entry.server(known.clone(), space).map_err(|wrong| {
            at(&format!("{pointer}/{}", wrong.key), &format!("`{KEY}.{name}`: {}", wrong.problem))
        })?;
        servers.insert(known, server);
    }
    Ok(servers)
}

/// An entry as it is written: what is as usual is left out.
pub(super) fn entry(server: &Server) -> serde_json::Value {
    let seconds = |time: Duration, usual: u64| Some(time.as_secs()).filter(|seconds| *seconds != usual);
    let mut entry = Entry {
        description: server.description.clone(),
        isolation: Some(server.isolation).filter(|isolation| *isolation != Isolation::default()),
        idle_timeout: seconds(server.idle_timeout, IDLE_TIMEOUT),
        timeout: seconds(server.timeout, TIMEOUT),
        start_timeout: seconds(server.start_timeout, START_TIMEOUT),
        schema_ttl: seconds(server.schema_ttl, SCHEMA_TTL),
        trust_annotations: server.trusts_annotations.then_some(true),
        ..Entry::default()
    };
    match &server.reach {
        Reach::Stdio { command, args, env, cwd } => {
            entry.kind = Some(Type::Stdio);
            entry.command = Some(command.clone());
            entry.args = Some(args.clone()).filter(|args| !args.is_empty());
            entry.env = Some(env.clone()).filter(|env| !env.is_empty());
            entry.cwd.clone_from(cwd);
        }
        Reach::Http { url, headers, auth } => {
            entry.kind = Some(Type::Http);
            entry.url = Some(url.clone());
            entry.headers = Some(headers.clone()).filter(|headers| !headers.is_empty());
            entry.auth = Some(*auth).filter(|auth| *auth != HttpAuth::None);
        }
    }
    serde_json::to_value(entry).unwrap_or_default()
}

impl Server {
    /// A server of which nothing is said but its name and how it is reached.
    pub fn new(name: ServerName, space: Space, reach: Reach) -> Self {
        Self {
            name,
            space,
            reach,
            description: None,
            isolation: Isolation::default(),
            idle_timeout: Duration::from_secs(IDLE_TIMEOUT),
            start_timeout: Duration::from_secs(START_TIMEOUT),
            timeout: Duration::from_secs(TIMEOUT),
            schema_ttl: Duration::from_secs(SCHEMA_TTL),
            trusts_annotations: false,
        }
    }
}

impl Entry {
    fn server(self, name: ServerName, space: Space) -> Result<Server, Wrong> {
        let mut server = Server::new(name, space, self.reach()?);
        let seconds = |key: &'static str, given: Option<u64>, usual: Duration| match given {
            None => Ok(usual),
            Some(seconds) if (1..=MOST_SECONDS).contains(&seconds) => Ok(Duration::from_secs(seconds)),
            Some(seconds) => Err(Wrong::new(
                key,
                format!("`{key}` is {seconds}: expected whole seconds from 1 to {MOST_SECONDS}"),
            )),
        };
        server.idle_timeout = seconds("idle_timeout", self.idle_timeout, server.idle_timeout)?;
        server.timeout = seconds("timeout", self.timeout, server.timeout)?;
        server.start_timeout = seconds("start_timeout", self.start_timeout, server.start_timeout)?;
        server.schema_ttl = seconds("schema_ttl", self.schema_ttl, server.schema_ttl)?;
        server.isolation = self.isolation.unwrap_or_default();
        server.trusts_annotations = self.trust_annotations.unwrap_or(false);
        server.description = self.description;
        check::reach(&server.reach)?;
        Ok(server)
    }

    fn reach(&self) -> Result<Reach, Wrong> {
        let kind = match (self.kind, &self.command, &self.url) {
            (Some(kind), ..) => kind,
            (None, Some(_), _) => Type::Stdio,
            (None, None, Some(_)) => Type::Http,
            (None, None, None) => {
                return Err(Wrong::new("", "it has neither `command` nor `url`"));
            }
        };
        let foreign = |key: &'static str, is_given: bool, kind: &str| {
            let problem = format!("`{key}` belongs to servers of `type: {kind}`");
            if is_given { Err(Wrong::new(key, problem)) } else { Ok(()) }
        };
        match kind {
            Type::Stdio => {
                foreign("url", self.url.is_some(), "http")?;
                foreign("headers", self.headers.is_some(), "http")?;
                foreign("auth", self.auth.is_some(), "http")?;
                Ok(Reach::Stdio {
                    command: self
                        .command
                        .clone()
                        .ok_or_else(|| Wrong::new("type", "`type: stdio` needs `command`"))?,
                    args: self.args.clone().unwrap_or_default(),
                    env: self.env.clone().unwrap_or_default(),
                    cwd: self.cwd.clone(),
                })
            }
            Type::Http => {
                foreign("command", self.command.is_some(), "stdio")?;
                foreign("args", self.args.is_some(), "stdio")?;
                foreign("env", self.env.is_some(), "stdio")?;
                foreign("cwd", self.cwd.is_some(), "stdio")?;
                Ok(Reach::Http {
                    url: self.url.clone().ok_or_else(|| Wrong::new("type", "`type: http` needs `url`"))?,
                    headers: self.headers.clone().unwrap_or_default(),
                    auth: self.auth.unwrap_or_default(),
                })
            }
        }
    }
}

/// Whether there is nothing in a file but comments.
pub(crate) fn says_nothing(bytes: &[u8]) -> bool {
    let is_silent = |line: &[u8]| line.trim_ascii().first().is_none_or(|first| *first == b'#');
    bytes.split(|byte| *byte == b'\n').all(is_silent)
}

/// The typed file, or where it is wrong (a JSON pointer) and how.
fn typed(document: &Document) -> Result<File, (String, String)> {
    serde_path_to_error::deserialize::<_, File>(&document.value).map_err(|error| {
        let segments: Vec<String> = error
            .path()
            .iter()
            .filter_map(|segment| match segment {
                serde_path_to_error::Segment::Seq { index } => Some(index.to_string()),
                serde_path_to_error::Segment::Map { key } => Some(key.clone()),
                _ => None,
            })
            .collect();
        let pointer = segments.iter().flat_map(|segment| ["/".to_owned(), escape(segment)]).collect();
        let inner = error.into_inner().to_string();
        let name = segments.join(".");
        (pointer, if name.is_empty() { inner } else { format!("`{name}`: {inner}") })
    })
}

fn escape(segment: &str) -> String {
    segment.replace('~', "~0").replace('/', "~1")
}
