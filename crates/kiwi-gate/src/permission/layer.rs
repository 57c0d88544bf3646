//! One set of permissions, ready to be asked. What is allowed in the end is what every layer allows.

use kiwi_model::Permissions;
use std::path::Path;

use super::glob::{Glob, contains, escape, meet};
use super::host::HostSet;
use super::kind::Kind;
use super::need::{Need, Thing};
use super::path::{Place, resolve, rooted, split};
use super::shell::Entry;
use crate::admission::{Judge, Objection};

/// One set of permissions under the name by which people know it.
#[derive(Debug, Clone)]
pub struct Layer {
    name: String,
    allowed: Listed,
    denied: Denied,
}

/// What a set of permissions lists.
#[derive(Debug, Clone, Default)]
struct Listed {
    read: Vec<Glob>,
    write: Vec<Glob>,
    tools: Vec<Glob>,
    shell: Vec<Entry>,
    actions: Vec<(Glob, Vec<Glob>)>,
    hosts: Vec<HostSet>,
    env: Vec<Glob>,
    secrets: Vec<Glob>,
}

/// The same for what is refused. Paths also as they are behind links.
#[derive(Debug, Clone, Default)]
struct Denied(Vec<(Kind, Refused)>);

#[derive(Debug, Clone)]
enum Refused {
    Paths(Glob),
    Names(Glob),
    Shell(Entry),
    Hosts(HostSet),
    /// Over `server/action`.
    Actions(Glob),
}

impl Layer {
    /// Reads a set of permissions. `name` is how people are told of it, such as "the profile `mcp`"; relative globs are
    /// rooted at `root`. A pattern that cannot be read refuses: it might have been meant to.
    pub fn new(
        name: impl Into<String>,
        permissions: &Permissions,
        root: &Path,
    ) -> Result<Self, Box<Objection>> {
        let name = name.into();
        let allowed =
            Listed::read(permissions, root).map_err(|problem| Box::new(unreadable(&name, &problem)))?;
        let denied =
            Denied::read(&permissions.deny, root).map_err(|problem| Box::new(unreadable(&name, &problem)))?;
        Ok(Self { name, allowed, denied })
    }

    /// How people are told of it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Why this layer does not allow a need, if it does not.
    pub(crate) fn refuses(&self, need: &Need) -> Option<Objection> {
        let why = match &need.thing {
            Thing::Opaque(why) => format!("cannot be judged: {why}"),
            Thing::Forbidden(why) => format!("is never allowed: {why}"),
            _ if self.denied.refuses(need) => {
                let told = objection(need, &self.name, &format!("is refused by `deny` of {}", self.name));
                return Some(told.with_hint("what `deny` lists is refused, whatever else is allowed"));
            }
            _ => match self.allowed.allows(need) {
                Ok(()) => return None,
                Err(Some(witness)) => format!("is not allowed by {}, which leaves out {witness}", self.name),
                Err(None) => format!("is not allowed by {}", self.name),
            },
        };
        Some(objection(need, &self.name, &why))
    }

    /// Whether one of its patterns of paths matches something below a folder.
    pub(crate) fn may_reach_into(&self, kind: Kind, folder: &Path) -> bool {
        let below = format!("{}/**", escape(&folder.to_string_lossy()).trim_end_matches('/'));
        let globs = match kind {
            Kind::FilesystemRead => &self.allowed.read,
            Kind::FilesystemWrite => &self.allowed.write,
            _ => return false,
        };
        Glob::path(&below).is_ok_and(|below| globs.iter().any(|glob| meet(glob, &below).is_some()))
    }

    /// What a child declares that goes beyond this layer: the kind, the pattern, and what lies beyond.
    pub(crate) fn exceeded_by(&self, child: &Permissions, root: &Path) -> Option<(Kind, String, String)> {
        let own = &self.allowed;
        for kind in [Kind::FilesystemRead, Kind::FilesystemWrite] {
            let (outer, inner) = match kind {
                Kind::FilesystemRead => (&own.read, &child.filesystem_read),
                _ => (&own.write, &child.filesystem_write),
            };
            for pattern in inner {
                let glob = rooted(pattern, root).and_then(|pattern| Glob::path(&pattern));
                let within = glob.and_then(|glob| contains(outer, &glob).map_err(|it| it.to_string()));
                if let Err(witness) = within {
                    return Some((kind, pattern.clone(), witness));
                }
            }
        }
        for (kind, outer, inner) in [
            (Kind::Tools, &own.tools, &child.tools),
            (Kind::Env, &own.env, &child.env),
            (Kind::Secrets, &own.secrets, &child.secrets),
        ] {
            for pattern in inner {
                let within = Glob::name(pattern)
                    .and_then(|glob| contains(outer, &glob).map_err(|witness| witness.to_string()));
                if let Err(witness) = within {
                    return Some((kind, pattern.clone(), witness));
                }
            }
        }
        let hosts: Vec<&HostSet> = own.hosts.iter().collect();
        for pattern in &child.network_hosts {
            if let Err(witness) = HostSet::read(pattern).and_then(|host| host.is_within(&hosts)) {
                return Some((Kind::NetworkHosts, pattern.clone(), witness));
            }
        }
        for pattern in &child.shell_commands {
            let within = Entry::read(pattern, root).and_then(|entry| entry.is_within(&own.shell));
            if let Err(witness) = within {
                return Some((Kind::ShellCommands, pattern.clone(), witness));
            }
        }
        let actions =
            child.mcp_actions.iter().flat_map(|(server, actions)| actions.iter().map(move |it| (server, it)));
        for (server, action) in actions {
            let need = Need::actions(server, action);
            if own.allows(&need).is_err() {
                return Some((Kind::McpActions, need.shown.clone(), format!("`{}`", need.shown)));
            }
        }
        None
    }
}

impl Listed {
    fn read(permissions: &Permissions, root: &Path) -> Result<Self, String> {
        let paths = |list: &[String]| each(list, |pattern| Glob::path(&rooted(pattern, root)?));
        let names = |list: &[String]| each(list, Glob::name);
        let mut actions = Vec::new();
        for (server, list) in &permissions.mcp_actions {
            actions.push((Glob::name(server).map_err(|why| bad(server, &why))?, names(list)?));
        }
        Ok(Self {
            read: paths(&permissions.filesystem_read)?,
            write: paths(&permissions.filesystem_write)?,
            tools: names(&permissions.tools)?,
            shell: each(&permissions.shell_commands, |entry| Entry::read(entry, root))?,
            actions,
            hosts: each(&permissions.network_hosts, HostSet::read)?,
            env: names(&permissions.env)?,
            secrets: names(&permissions.secrets)?,
        })
    }

    /// Whether a need is covered. `Err` with what is not, where the need is more than one thing.
    fn allows(&self, need: &Need) -> Result<(), Option<String>> {
        let when = |is_allowed: bool| if is_allowed { Ok(()) } else { Err(None) };
        let globs = match need.kind {
            Kind::FilesystemRead => &self.read,
            Kind::FilesystemWrite => &self.write,
            Kind::Tools => &self.tools,
            Kind::Env => &self.env,
            Kind::Secrets => &self.secrets,
            Kind::ShellCommands | Kind::McpActions | Kind::NetworkHosts => &Vec::new(),
        };
        let within = |glob: &Glob| contains(globs, glob).map_err(|witness| Some(witness.to_string()));
        match &need.thing {
            Thing::Names(glob) => {
                within(glob).map_err(|witness| witness.filter(|it| *it != format!("`{}`", need.shown)))
            }
            Thing::Path(place) if place.is_folder => within(&whole(place)),
            Thing::Path(place) => when(globs.iter().any(|glob| glob.matches(place.real()))),
            Thing::Paths { glob, .. } => within(glob),
            Thing::Hosts(host) => host.is_within(&self.hosts.iter().collect::<Vec<_>>()).map_err(|_| None),
            Thing::Actions { server, action } => {
                let of_server = self.actions.iter().filter(|(own, _)| contains([own], server).is_ok());
                when(contains(of_server.flat_map(|(_, actions)| actions), action).is_ok())
            }
            Thing::Program(command) => when(self.shell.iter().any(|entry| entry.allows(command))),
            Thing::Opaque(_) | Thing::Forbidden(_) => Err(None),
        }
    }
}

impl Denied {
    fn read(list: &[String], root: &Path) -> Result<Self, String> {
        let mut denied = Vec::new();
        for entry in list {
            let named = entry.split_once(':').and_then(|(kind, pattern)| {
                Some((Kind::ALL.into_iter().find(|known| known.as_str() == kind)?, pattern))
            });
            if let Some((kind, pattern)) = named {
                let refused = refused(kind, pattern, root).map_err(|why| bad(entry, &why))?;
                denied.extend(refused.into_iter().map(|refused| (kind, refused)));
                continue;
            }
            // What it means for some kinds it cannot mean for others: a path is no host.
            let readings = Kind::ALL.map(|kind| (kind, refused(kind, entry, root)));
            if let Some(why) =
                readings.iter().all(|(_, reading)| reading.is_err()).then_some("it means nothing")
            {
                return Err(bad(entry, why));
            }
            for (kind, reading) in readings {
                denied.extend(reading.into_iter().flatten().map(|refused| (kind, refused)));
            }
        }
        Ok(Self(denied))
    }

    fn refuses(&self, need: &Need) -> bool {
        self.0.iter().filter(|(kind, _)| *kind == need.kind).any(|(_, refused)| {
            match (refused, &need.thing) {
                (Refused::Paths(own), Thing::Path(place)) => {
                    own.matches(place.real())
                        || own.matches(&place.lexical)
                        || (place.is_folder && meet(own, &whole(place)).is_some())
                }
                (Refused::Paths(own), Thing::Paths { glob, .. })
                | (Refused::Names(own), Thing::Names(glob)) => meet(own, glob).is_some(),
                (Refused::Shell(entry), Thing::Program(command)) => entry.may_mean(command),
                (Refused::Hosts(own), Thing::Hosts(host)) => own.meets(host),
                (Refused::Actions(own), Thing::Actions { server, action }) => {
                    let both = Glob::name(&format!("{}/{}", server.as_str(), action.as_str()));
                    both.is_ok_and(|both| meet(own, &both).is_some())
                }
                _ => false,
            }
        })
    }
}

/// What one refused pattern means for a kind. A path means what lies below it too, and what a link in it leads to.
fn refused(kind: Kind, pattern: &str, root: &Path) -> Result<Vec<Refused>, String> {
    Ok(match kind {
        Kind::FilesystemRead | Kind::FilesystemWrite => {
            let pattern = rooted(pattern, root)?;
            let (base, rest) = split(&pattern);
            let mut base = escape(resolve(Path::new(&base))?.to_str().ok_or("it is not Unicode")?);
            if let Some(rest) = rest {
                base = format!("{}/{rest}", base.trim_end_matches('/'));
            }
            let mut globs = Vec::new();
            for pattern in [pattern, base] {
                globs.push(Refused::Paths(Glob::path(&format!("{}/**", pattern.trim_end_matches("/**")))?));
            }
            globs
        }
        Kind::Tools | Kind::Env | Kind::Secrets => vec![Refused::Names(Glob::name(pattern)?)],
        Kind::ShellCommands => vec![Refused::Shell(Entry::read(pattern, root)?)],
        Kind::NetworkHosts => vec![Refused::Hosts(HostSet::read(pattern)?)],
        // A server alone means all its actions.
        Kind::McpActions if pattern.contains('/') => vec![Refused::Actions(Glob::name(pattern)?)],
        Kind::McpActions => vec![Refused::Actions(Glob::name(&format!("{pattern}/*"))?)],
    })
}

/// A folder with all that is in it: whoever may open a folder can reach everything below.
fn whole(place: &Place) -> Glob {
    let pattern = format!("{}/**", escape(place.real()).trim_end_matches('/'));
    // An escaped path is always a pattern.
    Glob::path(&pattern).unwrap_or_else(|_| Glob::exactly(place.real()))
}

fn each<T>(list: &[String], read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    list.iter().map(|text| read(text).map_err(|why| bad(text, &why))).collect()
}

fn bad(pattern: &str, why: &str) -> String {
    format!("the pattern `{pattern}` cannot be read: {why}")
}

fn unreadable(name: &str, problem: &str) -> Objection {
    let objection =
        Objection::policy(Judge::Permission, "permission", format!("{name} cannot be judged by: {problem}"));
    objection.with_hint("correct the pattern; nothing is allowed until it can be read")
}

/// The sentence that every refusal of a need has.
pub(super) fn objection(need: &Need, layer: &str, why: &str) -> Objection {
    let kind = need.kind.as_str();
    let reason = format!("{} `{}` {why}", need.kind.doing(), need.shown);
    let hint = match &need.thing {
        Thing::Opaque(_) => {
            "give it in a form whose effect can be told beforehand, or let a person run it".to_owned()
        }
        Thing::Forbidden(_) => "leave it out, or let a person run it".to_owned(),
        _ => format!("whoever owns {layer} can list it under `{kind}`"),
    };
    Objection::policy(Judge::Permission, "permission", reason)
        .with_hint(hint)
        .with("permission", kind)
        .with("value", need.shown.clone())
        .with("layer", layer)
}
