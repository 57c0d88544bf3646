//! What is indexed of an item.

use kiwi_model::checksum;
use serde::{Deserialize, Serialize};

/// As much of an item's body as counts: what comes later in a long text says little about what it is.
const MOST_OF_A_BODY: usize = 4096;

/// What kind of item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A tool of a space.
    Tool,
    /// A tool of an upstream server.
    Mcp,
    /// What an agent is to do.
    Directive,
    /// What an agent should know.
    Knowledge,
}

impl Kind {
    /// The stable spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Mcp => "mcp",
            Self::Directive => "directive",
            Self::Knowledge => "knowledge",
        }
    }

    /// Items of one family share their names.
    pub const fn family(self) -> &'static str {
        match self {
            Self::Tool | Self::Mcp => "tool",
            Self::Directive => "directive",
            Self::Knowledge => "knowledge",
        }
    }
}

/// One item as it is indexed, or the knowledge that there is none to index.
#[derive(Debug, Clone)]
pub struct Document {
    /// Names it in its index: where it lies.
    pub key: String,
    /// What it can be looked for together with: the folder that it lies in.
    pub group: String,
    /// Changes when the item may have.
    pub stamp: u64,
    /// `None`: what lies there is not valid. It is remembered, so that it is not read again until it changes.
    pub item: Option<Item>,
}

/// What a search can find of an item, and what it shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// What kind.
    pub kind: Kind,
    /// Its name.
    pub id: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its version, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What it is for.
    pub description: String,
    /// Names of its parameters and what they mean.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<(String, String)>,
    /// The parameters on one line: `(path: string, limit?: integer)`.
    pub signature: String,
    /// Search words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Its folder path (`data/etl`).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub category: String,
    /// What sort of tool (`python`, `api`, …).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_type: Option<String>,
    /// What runs it, where it is a script (`python_runtime`, …).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// Whether others run on it, and nobody calls it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_support: bool,
    /// Whether its own files are all that it is made of, so that its stamp tells whether it is as it was.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_alone: bool,
    /// The text of a directive or knowledge entry.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
}

impl Item {
    /// The name that its text begins with.
    pub fn name(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.id)
    }

    /// Every name it has.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.id.as_str()).chain(self.title.as_deref().filter(|title| *title != self.id))
    }

    /// The type that people know a script by: `python` for what runs on `python_runtime`.
    pub fn written_type(&self) -> Option<&str> {
        self.runtime.as_deref()?.strip_suffix("_runtime")
    }

    /// What is embedded: `name: description parameter: its description …`; for a text its beginning too.
    pub fn embedded_text(&self) -> String {
        let mut text = format!("{}: {}", self.name(), self.description);
        for (name, meaning) in &self.parameters {
            text.push(' ');
            text.push_str(name);
            text.push_str(": ");
            text.push_str(meaning);
        }
        if !self.body.is_empty() {
            text.push(' ');
            text.push_str(&self.body);
        }
        text
    }

    /// The item with no more of its body than counts.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        if let Some((at, _)) = self.body.char_indices().nth(MOST_OF_A_BODY) {
            self.body.truncate(at);
        }
        self
    }
}

/// A key as the index holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(pub(crate) u64);

impl KeyHash {
    /// The hash of a key.
    pub fn of(key: &str) -> Self {
        Self(checksum(key.as_bytes()))
    }

    /// As a number.
    pub const fn number(self) -> u64 {
        self.0
    }
}
