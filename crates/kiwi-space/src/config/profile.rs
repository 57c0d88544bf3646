//! Profiles: what a caller may do, by the way it came in. Never by a name that it gives itself.

use kiwi_model::{Isolation, Permissions, Space};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::file::ConfigFile;

/// The way a call came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// A person, or a script of theirs, at a terminal.
    Cli,
    /// An agent that speaks MCP.
    Mcp,
}

impl Transport {
    /// Whether a program that thinks for itself is at the other end.
    pub const fn is_agent(self) -> bool {
        matches!(self, Self::Mcp)
    }
}

/// How a caller works; the strictest last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProfileMode {
    /// Rules may let it do more. Only the user's configuration can say so.
    Admin,
    /// As usual.
    #[default]
    Normal,
    /// Without changing anything.
    Readonly,
}

/// What becomes of a call that asks for a person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnAsk {
    /// It waits for one.
    #[default]
    Pending,
    /// It is denied, unless a grant covers it: nobody watches.
    Deny,
}

/// A profile as a configuration file may write it. In the user's file what is left out is as built in; in a project's
/// file everything narrows what holds without it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct ProfileSection {
    /// `normal`, `readonly`, or `admin`.
    pub mode: Option<ProfileMode>,
    /// Every call is held at least this tightly.
    pub isolation: Option<Isolation>,
    /// Whether a program that thinks for itself has this profile: then Kiwi's own files are out of its reach.
    pub agent: Option<bool>,
    /// Everything that the person could do is permitted, and `permissions` says nothing.
    pub everything: Option<bool>,
    /// The spaces whose tools may be called.
    pub spaces: Option<Vec<Space>>,
    /// Tools that need a person's approval, as globs of ids.
    pub ask: Option<Vec<String>>,
    /// What becomes of a call that asks: `pending`, or `deny` where nobody watches.
    pub on_ask: Option<OnAsk>,
    /// What may be touched; replaces the whole built-in list.
    pub permissions: Option<Permissions>,
}

/// The profile in force for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// How the caller works.
    pub mode: ProfileMode,
    /// The floor of isolation.
    pub isolation: Isolation,
    /// Whether Kiwi's own files are out of reach.
    pub is_agent: bool,
    /// The spaces whose tools may be called.
    pub spaces: Vec<Space>,
    /// Tools that need approval.
    pub ask: Vec<String>,
    /// What becomes of a call that asks.
    pub on_ask: OnAsk,
    /// What may be touched: all of these must allow it. None of them: everything.
    pub layers: Vec<ProfileLayer>,
}

/// One list of permissions, and who wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileLayer {
    /// As it is shown where it does not allow something.
    pub source: String,
    /// The list.
    pub permissions: Permissions,
}

impl Profile {
    /// A profile as one section says, with nothing left to others.
    fn of(name: &str, section: &ProfileSection, source: &str) -> Self {
        let layer = || ProfileLayer {
            source: source.to_owned(),
            permissions: section.permissions.clone().unwrap_or_default(),
        };
        Self {
            name: name.to_owned(),
            mode: section.mode.unwrap_or_default(),
            isolation: section.isolation.unwrap_or(Isolation::Trusted),
            is_agent: section.agent.unwrap_or(false),
            spaces: section.spaces.clone().unwrap_or_else(|| Space::LOOKUP.to_vec()),
            ask: section.ask.clone().unwrap_or_default(),
            on_ask: section.on_ask.unwrap_or_default(),
            layers: (!section.everything.unwrap_or(false)).then(layer).into_iter().collect(),
        }
    }

    /// The same, held to a section of a project as well.
    fn narrowed_by(mut self, section: &ProfileSection) -> Self {
        self.mode = self.mode.max(section.mode.unwrap_or(ProfileMode::Admin));
        self.isolation = self.isolation.max(section.isolation.unwrap_or(Isolation::Trusted));
        self.is_agent |= section.agent.unwrap_or(false);
        if let Some(spaces) = &section.spaces {
            self.spaces.retain(|space| spaces.contains(space));
        }
        self.ask.extend(section.ask.iter().flatten().cloned());
        self.on_ask = self.on_ask.max(section.on_ask.unwrap_or_default());
        if let Some(permissions) = &section.permissions {
            let source = format!("profile `{}` of the project", self.name);
            self.layers.push(ProfileLayer { source, permissions: permissions.clone() });
        }
        self
    }

    /// Both at once: what either refuses is refused.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        if self.name != other.name {
            self.name = format!("{}+{}", self.name, other.name);
        }
        self.mode = self.mode.max(other.mode);
        self.isolation = self.isolation.max(other.isolation);
        self.is_agent |= other.is_agent;
        self.spaces.retain(|space| other.spaces.contains(space));
        self.ask.extend(other.ask);
        self.on_ask = self.on_ask.max(other.on_ask);
        self.layers.extend(other.layers);
        self
    }
}

/// Everything that files say about profiles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Profiles {
    user: BTreeMap<String, ProfileSection>,
    project: BTreeMap<String, ProfileSection>,
    /// What each file binds a transport to.
    cli: [Option<String>; 2],
    mcp: [Option<String>; 2],
}

impl Profiles {
    pub fn in_force(user: &ConfigFile, project: &ConfigFile, warnings: &mut Vec<String>) -> Self {
        if project.profiles.values().any(|section| section.mode == Some(ProfileMode::Admin)) {
            warnings.push(
                "the project asks for `mode = \"admin\"`; only the user's configuration can".to_owned(),
            );
        }
        Self {
            user: user.profiles.clone(),
            project: project.profiles.clone(),
            cli: [user.transports.cli.clone(), project.transports.cli.clone()],
            mcp: [user.transports.mcp.clone(), project.transports.mcp.clone()],
        }
    }

    /// The profile of this name; `None` where nobody defines it. One that only a project defines narrows nothing that a
    /// user has allowed, so it allows nothing.
    pub fn named(&self, name: &str) -> Option<Profile> {
        let profile = match (built_in(name), self.user.get(name)) {
            (built_in, Some(own)) => {
                let section = own.clone().or(built_in.unwrap_or_default());
                Profile::of(name, &section, &format!("profile `{name}`"))
            }
            (Some(section), None) => Profile::of(name, &section, &format!("built-in profile `{name}`")),
            (None, None) => return None,
        };
        Some(match self.project.get(name) {
            Some(section) => profile.narrowed_by(section),
            None => profile,
        })
    }

    /// The names that a transport is bound to: all of them hold. A project's comes on top.
    pub fn bound(&self, transport: Transport, is_unattended: bool) -> impl Iterator<Item = &str> {
        let ([user, project], usual) = match transport {
            Transport::Cli => (&self.cli, if is_unattended { "ci" } else { "cli" }),
            Transport::Mcp => (&self.mcp, "mcp"),
        };
        std::iter::once(user.as_deref().unwrap_or(usual)).chain(project.as_deref())
    }

    /// Every name that means something.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = BUILT_IN.into_iter().chain(self.user.keys().map(String::as_str)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl ProfileSection {
    /// This section, and where it says nothing, another.
    fn or(self, other: Self) -> Self {
        let replaced = self.permissions.is_some();
        Self {
            mode: self.mode.or(other.mode),
            isolation: self.isolation.or(other.isolation),
            agent: self.agent.or(other.agent),
            // Whoever lists permissions means the list.
            everything: self.everything.or(other.everything.filter(|_| !replaced)),
            spaces: self.spaces.or(other.spaces),
            ask: self.ask.or(other.ask),
            on_ask: self.on_ask.or(other.on_ask),
            permissions: self.permissions.or(other.permissions),
        }
    }
}

const BUILT_IN: [&str; 4] = ["ci", "cli", "mcp", "readonly"];

/// What agents may do to items only when a person agrees.
const ITEM_CHANGES: [&str; 5] = ["kiwi.create", "kiwi.update", "kiwi.delete", "kiwi.sign", "kiwi.publish"];

fn built_in(name: &str) -> Option<ProfileSection> {
    let list = |entries: &[&str]| entries.iter().map(|entry| (*entry).to_owned()).collect::<Vec<String>>();
    let everything = ProfileSection { everything: Some(true), ..ProfileSection::default() };
    Some(match name {
        // Everything that the person could do.
        "cli" => everything,
        // The same where nobody watches.
        "ci" => ProfileSection { on_ask: Some(OnAsk::Deny), ..everything },
        // An agent: the tools of its project and of the system, files of the project, upstream servers. No shell, no
        // other network, no secrets.
        "mcp" => ProfileSection {
            agent: Some(true),
            isolation: Some(Isolation::Sandboxed),
            spaces: Some(vec![Space::Project, Space::System]),
            ask: Some(list(&ITEM_CHANGES)),
            permissions: Some(Permissions {
                filesystem_read: list(&["**"]),
                filesystem_write: list(&["**"]),
                tools: list(&["**"]),
                mcp_actions: BTreeMap::from([("*".to_owned(), list(&["*"]))]),
                ..Permissions::default()
            }),
            ..ProfileSection::default()
        },
        // Looking, not touching; walls see to it.
        "readonly" => ProfileSection {
            mode: Some(ProfileMode::Readonly),
            isolation: Some(Isolation::Sandboxed),
            permissions: Some(Permissions {
                filesystem_read: list(&["/**"]),
                tools: list(&["**"]),
                network_hosts: list(&["*"]),
                env: list(&["*"]),
                secrets: list(&["*"]),
                ..Permissions::default()
            }),
            ..ProfileSection::default()
        },
        _ => return None,
    })
}
