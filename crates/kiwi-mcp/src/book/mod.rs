//! What each server was seen to offer, and what a person agreed to.
//!
//! One file per server in the user space, `mcp/NAME.json`, and `mcp/NAME@PROJECT.json` for one that a project names. The
//! first listing of a server is what a person agreed to by adding or trusting it; what differs later waits in quarantine
//! until a person has seen the difference. A file that cannot be read is never taken for none: that would agree to
//! everything anew.

mod alike;
mod page;
mod reach;
mod standing;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use kiwi_model::{Digest, Space};
use kiwi_space::{PrivateFolder, Quiet, Seen, SpaceError, Spaces};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::definition::Listing;
use crate::error::McpError;
use crate::server::{Reach, Server, ServerName};
use page::{Agreement, Sheet};

pub use page::Page;
pub use reach::Package;
pub use standing::{Difference, Noted, Standing, Why};

const FOLDER: &str = "mcp";
/// More is no list of tools.
const MOST_BYTES: usize = 32 << 20;

/// The pages of all servers. They are read again only when they have changed.
#[derive(Debug)]
pub struct Book {
    spaces: Arc<Spaces>,
    pages: Mutex<HashMap<ServerName, Held>>,
}

#[derive(Debug)]
struct Held {
    /// The lull in which the file was last seen to be as it was read.
    quiet: Option<Quiet>,
    seen: Seen,
    /// Whose server it was then, and how it was reached.
    space: Space,
    reach: Reach,
    page: Option<Arc<Page>>,
}

impl Held {
    fn is_of(&self, server: &Server) -> bool {
        self.space == server.space && self.reach == server.reach
    }
}

/// What a person says yes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// Everything that waits.
    All,
    /// These tools.
    Named(Vec<String>),
}

impl Book {
    /// The book of this user.
    pub fn new(spaces: Arc<Spaces>) -> Self {
        Self { spaces, pages: Mutex::default() }
    }

    /// What is known about a server as it is reached now; nothing where it was never asked.
    pub fn page(&self, server: &Server) -> Result<Option<Arc<Page>>, McpError> {
        let quiet = self.spaces.lull();
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = pages.get(&server.name)
            && quiet.is_some()
            && held.quiet == quiet
            && held.is_of(server)
        {
            return Ok(held.page.clone());
        }
        let Ok(folder) = self.folder() else { return Ok(None) };
        let path = folder.file(&self.name(server));
        let is_still = |held: &Held| held.is_of(server) && held.seen.is_still(&path);
        let held = if let Some(held) = pages.remove(&server.name).filter(is_still) {
            Held { quiet, ..held }
        } else {
            let seen = Seen::of(&path).map_err(McpError::store)?;
            let page = self.sheet(&folder, server)?.map(|sheet| Arc::new(sheet.page()));
            let page = page.filter(|page| page.reach == server.reach_digest());
            Held { quiet, seen, space: server.space, reach: server.reach.clone(), page }
        };
        let page = held.page.clone();
        pages.insert(server.name.clone(), held);
        Ok(page)
    }

    /// Writes down what a server said. The first time, a person has just asked for the server: that is agreed to.
    pub fn note(&self, server: &Server, listing: Listing) -> Result<Arc<Page>, McpError> {
        self.change(server, |before, others| {
            let reach = server.reach_digest();
            let at = listing.at;
            let is_first = before.is_none();
            let mut sheet = match before {
                Some(before) => Sheet { reach, listing, ..before },
                None => Sheet {
                    format: Sheet::FORMAT,
                    server: server.name.clone(),
                    project: self.project(server).map(Path::to_owned),
                    reach,
                    listing,
                    agreed: BTreeMap::new(),
                    rejected: BTreeMap::new(),
                    findings: BTreeMap::new(),
                },
            };
            sheet.search(&others.iter().map(String::as_str).collect());
            if is_first {
                sheet.agree_to_all(at);
            }
            Ok(sheet)
        })
    }

    /// Agrees to tools as they were shown. One that has changed since is not what was agreed to.
    pub fn approve(
        &self,
        server: &Server,
        shown: &Page,
        choice: &Choice,
        at: Timestamp,
    ) -> Result<Arc<Page>, McpError> {
        let names: Vec<String> = match choice {
            Choice::All => shown.waiting().map(|noted| noted.name().to_owned()).collect(),
            Choice::Named(names) => names.clone(),
        };
        self.decide(server, shown, &names, |sheet, noted| {
            let name = noted.name();
            if let Some(why @ (Why::NotAnId | Why::Repeated)) = noted.why() {
                return Err(McpError::BadEntry {
                    problem: format!("`{}` cannot be approved: {}", name.escape_debug(), noted.sentence()),
                    hint: format!("the server must mend it ({})", why.word()),
                });
            }
            if let Some(Why::Renamed { from }) = noted.why() {
                sheet.agreed.remove(&from.name);
            }
            sheet.rejected.remove(name);
            sheet.findings.remove(name);
            let agreement = Agreement { definition: Arc::clone(&noted.definition), reach: sheet.reach, at };
            sheet.agreed.insert(name.to_owned(), agreement);
            Ok(())
        })
    }

    /// Says no to tools as they were shown.
    pub fn reject(&self, server: &Server, shown: &Page, names: &[String]) -> Result<Arc<Page>, McpError> {
        self.decide(server, shown, names, |sheet, noted| {
            if noted.is_agreed() {
                sheet.agreed.remove(noted.name());
            }
            sheet.rejected.insert(noted.name().to_owned(), noted.definition.digest());
            Ok(())
        })
    }

    /// Forgets a server, also what is damaged about it: the next listing is its first. Says whether anything was known.
    pub fn forget(&self, server: &Server) -> Result<bool, McpError> {
        let folder = self.folder().map_err(McpError::store)?;
        if !folder.exists().map_err(McpError::store)? {
            return Ok(false);
        }
        let _turn = folder.turn().map_err(McpError::store)?;
        folder.remove(&self.name(server)).map_err(McpError::store)
    }

    fn decide(
        &self,
        server: &Server,
        shown: &Page,
        names: &[String],
        mut decide: impl FnMut(&mut Sheet, &Noted) -> Result<(), McpError>,
    ) -> Result<Arc<Page>, McpError> {
        self.change(server, |before, _| {
            let changed = || McpError::BadEntry {
                problem: format!("what `{}` offers has changed since it was shown", server.name),
                hint: format!("`kiwi mcp review {}` shows it as it is now", server.name),
            };
            let mut sheet = before.filter(|sheet| sheet.reach == shown.reach).ok_or_else(changed)?;
            let page = sheet.page();
            for name in names {
                let noted = shown.tool(name).ok_or_else(|| McpError::BadEntry {
                    problem: format!("`{}` has no tool `{}`", server.name, name.escape_debug()),
                    hint: format!("`kiwi mcp review {}` shows what it has", server.name),
                })?;
                if page.tool(name).is_none_or(|now| now.definition != noted.definition) {
                    return Err(changed());
                }
                decide(&mut sheet, noted)?;
            }
            Ok(sheet)
        })
    }

    /// Changes a page; nobody else does meanwhile.
    fn change(
        &self,
        server: &Server,
        change: impl FnOnce(Option<Sheet>, &BTreeSet<String>) -> Result<Sheet, McpError>,
    ) -> Result<Arc<Page>, McpError> {
        let folder = self.folder().map_err(McpError::store)?;
        folder.make().map_err(McpError::store)?;
        let _turn = folder.turn().map_err(McpError::store)?;
        let name = self.name(server);
        let others = tools_of_others(&folder, &name)?;
        let sheet = change(self.sheet(&folder, server)?, &others)?;
        let bytes =
            serde_json::to_vec(&sheet).map_err(|error| McpError::Store { problem: error.to_string() })?;
        if bytes.len() > MOST_BYTES {
            let problem = format!("the MCP server `{}` lists {} bytes of tools", server.name, bytes.len());
            return Err(McpError::Store { problem });
        }
        folder.write(&name, &bytes).map_err(McpError::store)?;
        Ok(Arc::new(sheet.page()))
    }

    fn sheet(&self, folder: &PrivateFolder, server: &Server) -> Result<Option<Sheet>, McpError> {
        if !folder.exists().map_err(McpError::store)? {
            return Ok(None);
        }
        let name = self.name(server);
        let damaged = |problem: String| McpError::Damaged {
            server: server.name.to_string(),
            file: folder.file(&name),
            problem,
        };
        let Some(bytes) = folder.read(&name).map_err(|error| damaged(error.to_string()))? else {
            return Ok(None);
        };
        if bytes.len() > MOST_BYTES {
            return Err(damaged("it is too large".to_owned()));
        }
        let sheet: Sheet = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        let is_own = sheet.server == server.name && sheet.project.as_deref() == self.project(server);
        if sheet.format != Sheet::FORMAT || !is_own {
            return Err(damaged("it speaks of something else".to_owned()));
        }
        let is_keyed = |(name, agreed): (&String, &Agreement)| *name == agreed.definition.name;
        if !sheet.agreed.iter().all(is_keyed) {
            return Err(damaged("it names tools wrongly".to_owned()));
        }
        Ok(Some(sheet))
    }

    fn folder(&self) -> Result<PrivateFolder, SpaceError> {
        let user = self.spaces.ai(Space::User).ok_or(SpaceError::NoSpace { space: Space::User })?;
        Ok(PrivateFolder::new(user.join(FOLDER)))
    }

    /// The project whose file names a server.
    fn project(&self, server: &Server) -> Option<&Path> {
        self.spaces.project_root().filter(|_| server.space == Space::Project)
    }

    fn name(&self, server: &Server) -> String {
        match self.project(server) {
            Some(project) => {
                let digest = Digest::of(project.as_os_str().as_bytes()).hex();
                format!("{}@{}.json", server.name, digest.get(..32).unwrap_or(&digest))
            }
            None => format!("{}.json", server.name),
        }
    }
}

/// The names of what other servers offer. A page that cannot be read is told when its server is used.
fn tools_of_others(folder: &PrivateFolder, own: &str) -> Result<BTreeSet<String>, McpError> {
    #[derive(serde::Deserialize)]
    struct Tool {
        name: String,
    }
    #[derive(serde::Deserialize)]
    struct Tools {
        tools: Vec<Tool>,
    }
    #[derive(serde::Deserialize)]
    struct Names {
        listing: Tools,
    }
    let mut names = BTreeSet::new();
    for name in folder.names().map_err(McpError::store)?.iter().filter(|name| *name != own) {
        let Ok(Some(bytes)) = folder.read(name) else { continue };
        let Ok(page) = serde_json::from_slice::<Names>(&bytes) else { continue };
        names.extend(page.listing.tools.into_iter().map(|tool| tool.name.to_lowercase()));
    }
    Ok(names)
}
