//! A frozen chain: what was agreed to run. The file is meant for git, so its text is stable.

mod name;

pub use name::{LockName, SUFFIX, is_short_hash};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

use crate::{Digest, ErrorKind, Explain, Language, Link, Pin, Space, ToolId, Version, chain_hash};

/// The format this binary writes and reads.
pub const LOCKFILE_VERSION: u64 = 1;
/// How many hex digits of the chain hash a lockfile and its name carry.
const SHORT_HASH: usize = 12;

/// What a call does about its lockfile.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum LockMode {
    /// Lockfiles are not looked at.
    Off,
    /// The agreed versions run; what differs is a warning.
    #[default]
    Warn,
    /// A missing lockfile, or any difference, refuses the call.
    Strict,
}

impl LockMode {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Warn => "warn",
            Self::Strict => "strict",
        }
    }
}

impl std::str::FromStr for LockMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Off, Self::Warn, Self::Strict]
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| "expected off, warn or strict".to_owned())
    }
}

/// A lockfile. Keys that this version does not know are kept when it is written again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Kiwi lockfile")]
pub struct Lockfile {
    /// The format.
    pub lockfile_version: u64,
    /// When it was made, RFC 3339.
    pub generated_at: String,
    /// The tool it is for.
    pub root: LockRoot,
    /// First 12 hex digits of the hash over the chain.
    #[serde(default)]
    pub chain_hash: String,
    /// The chain, leaf first.
    pub resolved_chain: Vec<LockLink>,
    /// What the runtime installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<LockEnvironment>,
    /// The definition of an upstream MCP tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<Value>,
    /// Where it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<Value>,
    /// Anything else.
    #[serde(flatten)]
    #[schemars(skip)]
    pub rest: Map<String, Value>,
}

/// The tool a lockfile is for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LockRoot {
    /// Which tool.
    #[schemars(with = "String")]
    pub tool_id: ToolId,
    /// Which version.
    #[schemars(with = "String")]
    pub version: Version,
    /// Its identity.
    #[schemars(with = "String")]
    pub integrity: Digest,
    /// Its category.
    #[serde(default)]
    pub category: String,
    /// Anything else.
    #[serde(flatten)]
    #[schemars(skip)]
    pub rest: Map<String, Value>,
}

/// One link of a frozen chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LockLink {
    /// Which tool.
    #[schemars(with = "String")]
    pub tool_id: ToolId,
    /// Which version.
    #[schemars(with = "String")]
    pub version: Version,
    /// Its identity.
    #[schemars(with = "String")]
    pub integrity: Digest,
    /// The next link's id.
    #[schemars(with = "Option<String>")]
    pub executor: Option<ToolId>,
    /// Where it was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<Space>,
    /// Its files, so that a later difference can name the one that changed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub files: BTreeMap<String, Digest>,
    /// Anything else.
    #[serde(flatten)]
    #[schemars(skip)]
    pub rest: Map<String, Value>,
}

/// What a runtime installed for a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LockEnvironment {
    /// Exact version of the Python interpreter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// Exact version of Node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Every installed language package: `name==version sha256:…`.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub requires: Vec<Pin>,
    /// Anything else.
    #[serde(flatten)]
    #[schemars(skip)]
    pub rest: BTreeMap<String, Value>,
}

impl LockEnvironment {
    /// What was installed for a language.
    pub fn of(language: Language, interpreter: String, requires: Vec<Pin>) -> Self {
        let (python, node) = match language {
            Language::Python => (Some(interpreter), None),
            Language::Node => (None, Some(interpreter)),
        };
        Self { python, node, requires, rest: BTreeMap::new() }
    }

    /// The exact version of a language's interpreter.
    pub fn interpreter(&self, language: Language) -> Option<&str> {
        match language {
            Language::Python => self.python.as_deref(),
            Language::Node => self.node.as_deref(),
        }
    }
}

/// Why a text is not a lockfile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LockfileError {
    /// A merge left both sides in the file.
    #[error("holds conflict markers of an unfinished merge (line {line})")]
    Conflict {
        /// The first marker.
        line: usize,
    },
    /// Not readable as JSON of this shape.
    #[error("line {line}, column {column}: {message}")]
    Unreadable {
        /// Line.
        line: usize,
        /// Column.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// Written by a newer Kiwi.
    #[error("has lockfile_version {0}; this Kiwi reads up to {LOCKFILE_VERSION}")]
    Newer(u64),
    /// It contradicts itself.
    #[error("{0}")]
    Inconsistent(String),
}

impl Explain for LockfileError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::LockfileMismatch
    }
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Newer(_) => "update Kiwi; the file was not changed".into(),
            _ => "`kiwi lockfile update TOOL` makes it again from what is here".into(),
        })
    }
}

impl Lockfile {
    /// Reads a lockfile and refuses one that contradicts itself.
    pub fn parse(text: &str) -> Result<Self, LockfileError> {
        let marker = |line: &str| {
            ["<<<<<<< ", "=======", ">>>>>>> ", "||||||| "]
                .iter()
                .any(|mark| line == mark.trim_end() || line.starts_with(mark))
        };
        if let Some(at) = text.lines().position(marker) {
            return Err(LockfileError::Conflict { line: at + 1 });
        }
        // A newer format may have any shape: look at its number before anything else.
        let value: Value = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
        match value.get("lockfile_version").and_then(Value::as_u64) {
            Some(version) if version > LOCKFILE_VERSION => return Err(LockfileError::Newer(version)),
            Some(_) => {}
            None => return Err(LockfileError::Inconsistent("has no lockfile_version".into())),
        }
        let mut lock: Self = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
        lock.check()?;
        Ok(lock)
    }

    fn check(&mut self) -> Result<(), LockfileError> {
        let wrong = |message: String| Err(LockfileError::Inconsistent(message));
        let Some(first) = self.resolved_chain.first() else { return wrong("its chain is empty".into()) };
        if (&first.tool_id, &first.version, &first.integrity)
            != (&self.root.tool_id, &self.root.version, &self.root.integrity)
        {
            return wrong("its root is not the first link of its chain".into());
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = self.resolved_chain.iter().find(|link| !seen.insert(&link.tool_id)) {
            return wrong(format!("its chain holds `{}` twice", twice.tool_id));
        }
        let computed = short_chain_hash(&self.resolved_chain);
        if self.chain_hash.is_empty() {
            self.chain_hash = computed;
        } else if self.chain_hash != computed {
            return wrong(format!("its chain_hash is {} but its links give {computed}", self.chain_hash));
        }
        Ok(())
    }

    /// The text of the file: stable key order, two spaces, one line break at the end.
    pub fn to_text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Whether two lockfiles agree on everything but when they were made.
    pub fn agrees_with(&self, other: &Self) -> bool {
        let timeless = |lock: &Self| Self { generated_at: String::new(), ..lock.clone() };
        timeless(self) == timeless(other)
    }
}

fn unreadable(error: &serde_json::Error) -> LockfileError {
    let text = error.to_string();
    let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message).to_owned();
    LockfileError::Unreadable { line: error.line(), column: error.column(), message }
}

/// The short hash over frozen links.
pub fn short_chain_hash(links: &[LockLink]) -> String {
    let links: Vec<Link> = links
        .iter()
        .map(|link| Link {
            tool_id: link.tool_id.clone(),
            version: link.version.clone(),
            space: link.space.unwrap_or(Space::Project),
            integrity: link.integrity,
            executor: link.executor.clone(),
        })
        .collect();
    short(&chain_hash(&links))
}

/// The first digits of a chain hash, as lockfiles and their names carry it.
pub fn short(hash: &Digest) -> String {
    hash.hex().chars().take(SHORT_HASH).collect()
}

/// The JSON Schema of a lockfile, generated from the types.
pub fn lockfile_schema() -> Value {
    schemars::schema_for!(Lockfile).to_value()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock() -> Lockfile {
        let integrity = Digest::of(b"x");
        let link = |id: &str, executor: Option<&str>| LockLink {
            tool_id: ToolId::parse(id).expect("id"),
            version: Version::new(1, 0, 0),
            integrity,
            executor: executor.map(|id| ToolId::parse(id).expect("id")),
            space: Some(Space::System),
            files: BTreeMap::new(),
            rest: Map::new(),
        };
        let resolved_chain = vec![link("a", Some("subprocess")), link("subprocess", None)];
        Lockfile {
            lockfile_version: 1,
            generated_at: "2026-01-24T12:00:00Z".into(),
            root: LockRoot {
                tool_id: ToolId::parse("a").expect("id"),
                version: Version::new(1, 0, 0),
                integrity,
                category: "data".into(),
                rest: Map::new(),
            },
            chain_hash: short_chain_hash(&resolved_chain),
            resolved_chain,
            environment: None,
            upstream: None,
            registry: None,
            rest: Map::new(),
        }
    }

    #[test]
    fn text_round_trips_and_unknown_keys_are_kept() {
        let text = lock().to_text().replacen("\"generated_at\"", "\"zebra\": [1],\n  \"generated_at\"", 1);
        let read = Lockfile::parse(&text).expect("lockfile");
        assert_eq!(read.rest.get("zebra"), Some(&serde_json::json!([1])));
        let again = read.to_text();
        assert_eq!(Lockfile::parse(&again).expect("lockfile").to_text(), again);
        assert!(
            again.ends_with("}\n") && again.starts_with("{\n  \"lockfile_version\": 1,\n  \"generated_at\"")
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        let good = lock().to_text();
        let check = |text: &str, part: &str| {
            let error = Lockfile::parse(text).expect_err(part);
            assert!(error.to_string().contains(part), "{error} does not say {part}");
            assert_eq!(error.kind(), ErrorKind::LockfileMismatch);
        };
        check(&format!("<<<<<<< HEAD\n{good}=======\n{good}>>>>>>> other\n"), "conflict markers");
        check(good.get(..good.len() / 2).expect("half"), "line");
        check("", "line 1");
        check(&good.replace("\"lockfile_version\": 1", "\"lockfile_version\": 2"), "lockfile_version 2");
        check(&good.replace("\"lockfile_version\": 1,", ""), "no lockfile_version");
        check(&good.replacen("sha256:", "sha256:00", 1), "64 lowercase hex digits");
        check(&good.replace("\"tool_id\": \"subprocess\"", "\"tool_id\": \"a\""), "`a` twice");
        check(
            &good.replacen("\"version\": \"1.0.0\"", "\"version\": \"1.0.1\"", 1),
            "its root is not the first link",
        );
        check(&good.replace(&lock().chain_hash, "000000000000"), "its links give");
    }
}
