//! What a pool needs of the world around it; it looks nothing up by itself.

use kiwi_exec::{Confinement, HttpClient, Launcher};
use std::path::PathBuf;
use std::sync::Arc;

use super::authorize::Authorize;
use crate::server::ServerName;

/// Finds what a variable of an entry stands for.
pub type Lookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;
/// Is told what has changed at a server.
pub type OnChange = Arc<dyn Fn(&ServerName, Change<'_>) + Send + Sync>;

/// What has changed at a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<'a> {
    /// Its list of tools, perhaps.
    Tools,
    /// A resource that is followed, by its address.
    Resource(&'a str),
}

/// What a pool needs of the world around it.
#[derive(Clone)]
pub struct Surroundings {
    /// What starts processes.
    pub launcher: Launcher,
    /// What opens connections.
    pub http: Arc<HttpClient>,
    /// What the environment of a server's process starts from.
    pub environment: Vec<(String, String)>,
    /// What `${VAR}` in an entry stands for.
    pub lookup: Lookup,
    /// Where a bare command is found.
    pub search_path: String,
    /// The folder that a server starts in.
    pub project: PathBuf,
    /// What a server behind walls may reach; it counts at the levels that have walls.
    pub confinement: Confinement,
    /// The folder for tokens of servers that use OAuth: private, in the user space.
    pub tokens: PathBuf,
    /// Who asks a person for access; nobody, where no person is there.
    pub authorize: Option<Arc<dyn Authorize>>,
    /// Is told what has changed at a server; a flood of news about its tools is told once.
    pub on_change: OnChange,
}

impl std::fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings").field("project", &self.project).finish_non_exhaustive()
    }
}
