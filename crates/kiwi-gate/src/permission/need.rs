//! One thing that a call needs.

use std::path::Path;

use super::glob::{Glob, escape};
use super::host::HostSet;
use super::kind::Kind;
use super::path::{Place, split};
use super::shell::Command;

/// One thing that a call needs.
#[derive(Debug, Clone)]
pub struct Need {
    /// Of which kind.
    pub kind: Kind,
    /// As people are told.
    pub shown: String,
    pub(crate) thing: Thing,
}

/// What is needed, ready to be matched.
#[derive(Debug, Clone)]
pub(crate) enum Thing {
    /// A name, or names.
    Names(Glob),
    /// A file, or a folder with all that is in it.
    Path(Place),
    /// Whatever a pattern matches: everything up to its first wildcard, and the whole with links resolved up to there.
    Paths { base: Place, glob: Glob },
    /// A host, or hosts.
    Hosts(HostSet),
    /// Actions of servers.
    Actions { server: Glob, action: Glob },
    /// A program with arguments.
    Program(Command),
    /// What cannot be judged, and why.
    Opaque(String),
    /// What no list of programs allows.
    Forbidden(String),
}

impl Need {
    /// A tool that is called.
    pub fn tool(id: &str) -> Self {
        Self::name(Kind::Tools, id)
    }

    /// An action of an upstream server.
    pub fn action(server: &str, action: &str) -> Self {
        let thing = Thing::Actions { server: Glob::exactly(server), action: Glob::exactly(action) };
        Self { kind: Kind::McpActions, shown: format!("{server}/{action}"), thing }
    }

    /// A file or folder of exactly this name, relative ones seen from `base`.
    pub fn path(kind: Kind, path: &str, base: &Path) -> Self {
        let place = Place::find(path, base);
        let shown = place.as_ref().map_or_else(|_| path.to_owned(), |place| place.real().to_owned());
        Self { kind, shown, thing: place.map_or_else(Thing::Opaque, Thing::Path) }
    }

    /// A program that a command runs.
    pub(crate) fn program(command: Command) -> Self {
        Self { kind: Kind::ShellCommands, shown: command.to_string(), thing: Thing::Program(command) }
    }

    pub(crate) fn name(kind: Kind, name: &str) -> Self {
        Self { kind, shown: name.to_owned(), thing: Thing::Names(Glob::exactly(name)) }
    }

    /// Names that a manifest writes as a pattern.
    pub(crate) fn names(kind: Kind, pattern: &str) -> Self {
        Self::read(kind, pattern, Glob::name(pattern).map(Thing::Names))
    }

    pub(crate) fn actions(server: &str, action: &str) -> Self {
        let read = || Ok(Thing::Actions { server: Glob::name(server)?, action: Glob::name(action)? });
        Self::read(Kind::McpActions, &format!("{server}/{action}"), read())
    }

    pub(crate) fn host(pattern: &str) -> Self {
        Self::read(Kind::NetworkHosts, pattern, HostSet::read(pattern).map(Thing::Hosts))
    }

    /// Paths that a manifest writes as a pattern; one without wildcards is a path.
    pub(crate) fn paths(kind: Kind, pattern: &str, project: &Path) -> Self {
        let (base, rest) = split(pattern);
        let Some(rest) = rest else { return Self::path(kind, &base, project) };
        let read = || {
            if rest.split('/').any(|part| part == "..") {
                return Err("it goes up with `..` from a wildcard".to_owned());
            }
            let base = Place::find(&base, project)?;
            let glob = Glob::path(&format!("{}/{rest}", escape(base.real()).trim_end_matches('/')))?;
            Ok(Thing::Paths { base, glob })
        };
        Self::read(kind, pattern, read())
    }

    pub(crate) fn opaque(kind: Kind, shown: &str, why: impl Into<String>) -> Self {
        Self { kind, shown: shown.to_owned(), thing: Thing::Opaque(why.into()) }
    }

    pub(crate) fn forbidden(shown: &str, why: impl Into<String>) -> Self {
        Self { kind: Kind::ShellCommands, shown: shown.to_owned(), thing: Thing::Forbidden(why.into()) }
    }

    fn read(kind: Kind, shown: &str, thing: Result<Thing, String>) -> Self {
        Self { kind, shown: shown.to_owned(), thing: thing.unwrap_or_else(Thing::Opaque) }
    }
}
