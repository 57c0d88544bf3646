//! What is known about one server.

use jiff::Timestamp;
use kiwi_model::Digest;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::alike::{Likeness, most_alike};
use super::standing::{Noted, Standing, Why};
use crate::definition::{Definition, Listing};
use crate::scan::{Finding, scan};
use crate::server::ServerName;

/// The longest name of a tool.
const MOST_NAME: usize = 128;
/// How many tools that came are compared with how many that went.
const MOST_COMPARED: usize = 200;

/// What a server was last seen to offer, and how each of its tools stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// Whose.
    pub server: ServerName,
    /// How the server was reached.
    pub reach: Digest,
    /// What it said.
    pub listing: Listing,
    /// Its tools, in its own order.
    pub tools: Vec<Noted>,
}

impl Page {
    /// The tool of that name.
    pub fn tool(&self, name: &str) -> Option<&Noted> {
        self.tools.iter().find(|noted| noted.name() == name)
    }

    /// The tools that may be used.
    pub fn agreed(&self) -> impl Iterator<Item = &Noted> {
        self.tools.iter().filter(|noted| noted.is_agreed())
    }

    /// The tools that wait for a person.
    pub fn waiting(&self) -> impl Iterator<Item = &Noted> {
        self.tools.iter().filter(|noted| noted.is_waiting())
    }

    /// Whether what the server said is still good. What it said in the future is not.
    pub fn is_fresh(&self, ttl: Duration, now: Timestamp) -> bool {
        let age = now.duration_since(self.listing.at);
        !age.is_negative() && age.unsigned_abs() < ttl
    }
}

/// A page as it is written down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sheet {
    /// The way it is written.
    pub(super) format: u32,
    pub(super) server: ServerName,
    /// The project whose file names the server; the user's otherwise.
    pub(super) project: Option<PathBuf>,
    pub(super) reach: Digest,
    pub(super) listing: Listing,
    /// What a person agreed to, by name. Also of tools that are not offered any more: they may come back.
    pub(super) agreed: BTreeMap<String, Agreement>,
    /// What a person said no to, by name.
    pub(super) rejected: BTreeMap<String, Digest>,
    /// What is suspicious, by name.
    pub(super) findings: BTreeMap<String, Vec<Finding>>,
}

/// What a person agreed to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Agreement {
    #[serde(with = "shared")]
    pub(super) definition: Arc<Definition>,
    /// How the server was reached then.
    pub(super) reach: Digest,
    pub(super) at: Timestamp,
}

impl Sheet {
    pub(super) const FORMAT: u32 = 1;

    /// Looks through everything that nobody agreed to.
    pub(super) fn search(&mut self, others: &BTreeSet<&str>) {
        let own: BTreeSet<&str> = self.listing.tools.iter().map(|tool| tool.name.as_str()).collect();
        let mut found = BTreeMap::new();
        for tool in &self.listing.tools {
            if self.agreed.get(&tool.name).is_some_and(|agreed| *agreed.definition == *tool) {
                continue;
            }
            let findings = scan(tool, &own, others);
            if !findings.is_empty() {
                found.entry(tool.name.clone()).or_insert(findings);
            }
        }
        self.findings = found;
    }

    /// Agrees to everything that is above suspicion: a person has just said that they want this server.
    pub(super) fn agree_to_all(&mut self, at: Timestamp) {
        let names = self.repeated();
        for tool in &self.listing.tools {
            if is_name(&tool.name) && !names.contains(&tool.name) && !self.findings.contains_key(&tool.name) {
                let agreement = Agreement { definition: Arc::new(tool.clone()), reach: self.reach, at };
                self.agreed.insert(tool.name.clone(), agreement);
            }
        }
    }

    /// How each tool stands.
    pub(super) fn page(&self) -> Page {
        let repeated = self.repeated();
        let offered: BTreeSet<&str> = self.listing.tools.iter().map(|tool| tool.name.as_str()).collect();
        let came = self.listing.tools.iter().filter(|tool| !self.agreed.contains_key(&tool.name)).count();
        let went = self.agreed.values().filter(|agreed| !offered.contains(agreed.definition.name.as_str()));
        let went: Vec<(&Arc<Definition>, Likeness)> = if came == 0 || came > MOST_COMPARED {
            Vec::new()
        } else {
            let went = went.take(MOST_COMPARED);
            went.map(|agreed| (&agreed.definition, Likeness::of(&agreed.definition))).collect()
        };
        let noted = |tool: &Definition| {
            let quarantined = |why: Why| Standing::Quarantined { why };
            let agreed = self.agreed.get(&tool.name);
            let mut definition = None;
            let is_rejected = self.rejected.get(&tool.name).is_some_and(|digest| *digest == tool.digest());
            let standing = match agreed {
                _ if !is_name(&tool.name) => quarantined(Why::NotAnId),
                _ if repeated.contains(&tool.name) => quarantined(Why::Repeated),
                _ if is_rejected => quarantined(Why::Rejected),
                Some(agreed) if *agreed.definition == *tool => {
                    definition = Some(Arc::clone(&agreed.definition));
                    if agreed.reach == self.reach { Standing::Agreed } else { quarantined(Why::Moved) }
                }
                Some(agreed) => quarantined(Why::Changed { from: Arc::clone(&agreed.definition) }),
                None => match most_alike(tool, &went) {
                    Some(from) => quarantined(Why::Renamed { from: Arc::clone(from) }),
                    None if self.findings.contains_key(&tool.name) => quarantined(Why::Suspicious),
                    None => quarantined(Why::New),
                },
            };
            let findings = match standing {
                Standing::Agreed => Vec::new(),
                Standing::Quarantined { .. } => self.findings.get(&tool.name).cloned().unwrap_or_default(),
            };
            Noted { definition: definition.unwrap_or_else(|| Arc::new(tool.clone())), standing, findings }
        };
        Page {
            server: self.server.clone(),
            reach: self.reach,
            tools: self.listing.tools.iter().map(noted).collect(),
            listing: self.listing.clone(),
        }
    }

    /// Names that stand more than once in the listing: which of them would be called is the server's choice.
    fn repeated(&self) -> BTreeSet<String> {
        let mut seen = BTreeSet::new();
        let names = self.listing.tools.iter().map(|tool| tool.name.as_str());
        names.filter(|name| !seen.insert(*name)).map(str::to_owned).collect()
    }
}

/// Whether a name can follow `server.` in an id.
pub(super) fn is_name(name: &str) -> bool {
    let is_first = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    name.len() <= MOST_NAME
        && name.bytes().next().is_some_and(is_first)
        && name.bytes().all(|b| is_first(b) || b == b'.' || b == b'-')
}

/// A shared definition is written as one that is not.
mod shared {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};
    use std::sync::Arc;

    use crate::definition::Definition;

    pub(super) fn serialize<S: Serializer>(it: &Arc<Definition>, serializer: S) -> Result<S::Ok, S::Error> {
        it.as_ref().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<Definition>, D::Error> {
        Definition::deserialize(deserializer).map(Arc::new)
    }
}
