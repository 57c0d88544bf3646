//! Which servers there are: `config/mcp_registry.yaml` of the project, then of the user.
//!
//! A file that is wrong refuses everything: what it would have said is not known.

mod check;
mod file;
#[cfg(test)]
mod tests;

use kiwi_model::Space;
use kiwi_space::{Quiet, Settings, Spaces};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::edit::Format;
use crate::error::McpError;
use crate::server::{Reach, Server, ServerName};

pub(crate) use file::says_nothing;

/// Why a way to reach a server cannot be written in the registry.
pub(crate) fn check_reach(reach: &Reach) -> Result<(), String> {
    check::reach(reach).map_err(|wrong| wrong.problem)
}

/// The file, below `config/`.
const FILE: &str = "mcp_registry.yaml";
/// Nearest first: the first that names a server says what it is.
const ORDER: [Space; 2] = [Space::Project, Space::User];

/// The servers that files name. Files are read again only when they have changed.
#[derive(Debug)]
pub struct Registry {
    spaces: Arc<Spaces>,
    held: Mutex<Option<Held>>,
}

#[derive(Debug)]
struct Held {
    /// The lull in which the files were last seen to be as they were read.
    quiet: Option<Quiet>,
    files: Vec<Settings>,
    servers: Arc<BTreeMap<ServerName, Arc<Server>>>,
    shadowed: Arc<Vec<Server>>,
}

impl Registry {
    /// The servers of these spaces.
    pub fn new(spaces: Arc<Spaces>) -> Self {
        Self { spaces, held: Mutex::new(None) }
    }

    /// Every server by its name; a project's hides a user's of the same name.
    pub fn servers(&self) -> Result<Arc<BTreeMap<ServerName, Arc<Server>>>, McpError> {
        self.held(|held| Arc::clone(&held.servers))
    }

    /// The user's servers that a project's of the same name hides.
    pub fn shadowed(&self) -> Result<Arc<Vec<Server>>, McpError> {
        self.held(|held| Arc::clone(&held.shadowed))
    }

    /// One server.
    pub fn server(&self, name: &str) -> Result<Arc<Server>, McpError> {
        let servers = self.servers()?;
        let known = ServerName::parse(name).ok().and_then(|name| servers.get(&name).cloned());
        known.ok_or_else(|| McpError::UnknownServer {
            name: name.to_owned(),
            known: servers.keys().map(ToString::to_string).collect(),
        })
    }

    /// Where the file of a space is, whether or not it is there.
    pub fn file(&self, space: Space) -> Option<PathBuf> {
        self.spaces.ai(space).map(|ai| ai.join("config").join(FILE))
    }

    /// Names servers in the file of a space; the rest of the file stays as it is. All of them or none.
    pub fn add(&self, space: Space, servers: &[Server]) -> Result<(), McpError> {
        self.change(space, |text, path| {
            let there = file::read(text.as_bytes(), space, path)?;
            let mut text = text.to_owned();
            for server in servers {
                if there.contains_key(&server.name) {
                    return Err(McpError::BadEntry {
                        problem: format!("there is an MCP server `{}` in `{}`", server.name, path.display()),
                        hint: format!("`kiwi mcp remove {}` takes it away first", server.name),
                    });
                }
                let entry = file::entry(server);
                text = Format::Yaml.insert(&text, &[file::KEY], server.name.as_str(), &entry).map_err(
                    |problem| McpError::BadRegistry { file: path.clone(), problem: problem.to_string() },
                )?;
            }
            Ok(text)
        })
    }

    /// Names a server no more in the file of a space; the rest of the file stays as it is. Gives what was there.
    pub fn remove(&self, space: Space, name: &ServerName) -> Result<Server, McpError> {
        let there = self.of(space)?;
        let server = there.get(name).cloned().ok_or_else(|| McpError::UnknownServer {
            name: name.to_string(),
            known: there.keys().map(ToString::to_string).collect(),
        })?;
        self.change(space, |text, path| {
            Format::Yaml
                .remove(text, &[file::KEY], name.as_str())
                .map_err(|problem| McpError::BadRegistry { file: path.clone(), problem: problem.to_string() })
        })?;
        Ok(server)
    }

    /// The servers of one space's file, hidden or not.
    pub fn of(&self, space: Space) -> Result<BTreeMap<ServerName, Server>, McpError> {
        match self.spaces.settings(space, FILE).map_err(McpError::store)? {
            Some(Settings { path, bytes: Some(bytes), .. }) => file::read(&bytes, space, &path),
            _ => Ok(BTreeMap::new()),
        }
    }

    /// Writes a file anew, once it was read as it will be.
    fn change(
        &self,
        space: Space,
        edit: impl FnOnce(&str, &PathBuf) -> Result<String, McpError>,
    ) -> Result<(), McpError> {
        self.spaces.change_settings(space, FILE, |before| {
            let bytes = before.bytes.as_deref().unwrap_or_default();
            // A file that is wrong already is mended by a person, not written over.
            file::read(bytes, space, &before.path)?;
            let text = std::str::from_utf8(bytes).unwrap_or_default();
            let text = edit(text, &before.path)?;
            file::read(text.as_bytes(), space, &before.path)?;
            Ok(text.into_bytes())
        })
    }

    fn held<T>(&self, take: impl FnOnce(&Held) -> T) -> Result<T, McpError> {
        let quiet = self.spaces.lull();
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let is_still = |held: &Held| {
            (quiet.is_some() && held.quiet == quiet) || held.files.iter().all(Settings::are_still)
        };
        let known = held.take().filter(is_still);
        let known = known.map_or_else(|| self.read(), Ok)?;
        Ok(take(held.insert(Held { quiet, ..known })))
    }

    fn read(&self) -> Result<Held, McpError> {
        let (mut files, mut servers, mut shadowed) = (Vec::new(), BTreeMap::new(), Vec::new());
        for space in ORDER {
            let Some(settings) = self.spaces.settings(space, FILE).map_err(McpError::store)? else {
                continue;
            };
            let named = match &settings.bytes {
                Some(bytes) => file::read(bytes, space, &settings.path)?,
                None => BTreeMap::new(),
            };
            for (name, server) in named {
                match servers.entry(name) {
                    std::collections::btree_map::Entry::Occupied(_) => shadowed.push(server),
                    std::collections::btree_map::Entry::Vacant(place) => {
                        place.insert(Arc::new(server));
                    }
                }
            }
            files.push(settings);
        }
        Ok(Held { quiet: None, files, servers: Arc::new(servers), shadowed: Arc::new(shadowed) })
    }
}
