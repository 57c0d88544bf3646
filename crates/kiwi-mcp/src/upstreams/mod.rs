//! Servers, what is known about them, and the connections to them: together.

mod offers;
mod tool;

use jiff::Timestamp;
use kiwi_chain::{Tool, UpstreamAction};
use kiwi_model::{Integrity, Space, ToolId};
use kiwi_space::Spaces;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::{broadcast, watch};

use crate::answer::Answer;
use crate::book::{Book, Page};
use crate::error::McpError;
use crate::pool::{Change, Connection, Pool, Surroundings};
use crate::registry::Registry;
use crate::relay::Relay;
use crate::server::{Server, ServerName};
pub use offers::Offer;
pub(crate) use tool::of_definition as tool_of;

use offers::Offers;
use tool::Named;

/// Who is this far behind with what has changed misses some of it.
const MOST_UPDATES: usize = 256;

/// Says whether servers that only the project names may be contacted, and if not, why.
pub type MayContact = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// Every upstream server of this place.
pub struct Upstreams {
    registry: Registry,
    book: Book,
    pool: Pool,
    may_contact: MayContact,
    /// Tools made from pages, so that a call does not make its tool anew.
    made: Mutex<HashMap<ServerName, Made>>,
    /// The connection whose listing the book holds. Another one has to list before it is asked for anything.
    listed: Mutex<HashMap<ServerName, u64>>,
    /// One listing at a time for each server.
    turns: Mutex<HashMap<ServerName, Arc<tokio::sync::Mutex<()>>>>,
    offers: Offers,
    /// Counts what was learnt about servers.
    news: watch::Sender<u64>,
    /// Addresses of followed resources that have changed.
    updates: broadcast::Sender<String>,
}

/// The tools of one page.
#[derive(Clone)]
struct Made {
    page: Arc<Page>,
    space: Space,
    tools: Arc<BTreeMap<String, Arc<Tool>>>,
}

/// One request to a server.
pub struct Wanted<'a> {
    /// Which server.
    pub server: &'a str,
    /// What is asked of it.
    pub action: &'a UpstreamAction,
    /// With what, as the protocol has it.
    pub params: Value,
    /// The identity of the tool that was planned, where it is the server's own.
    pub planned: Option<(&'a ToolId, Integrity)>,
}

impl Upstreams {
    /// The servers that the spaces name.
    pub fn new(spaces: &Arc<Spaces>, surroundings: Surroundings, may_contact: MayContact) -> Arc<Self> {
        Arc::new_cyclic(|own: &Weak<Self>| {
            let own = own.clone();
            let on_change = move |server: &ServerName, change: Change<'_>| {
                let Some(upstreams) = own.upgrade() else { return };
                match change {
                    Change::Tools => upstreams.changed(server),
                    // Where nobody listens, nobody is told.
                    Change::Resource(uri) => drop(upstreams.updates.send(uri.to_owned())),
                }
            };
            Self {
                registry: Registry::new(Arc::clone(spaces)),
                book: Book::new(Arc::clone(spaces)),
                pool: Pool::new(Surroundings { on_change: Arc::new(on_change), ..surroundings }),
                may_contact,
                made: Mutex::default(),
                listed: Mutex::default(),
                turns: Mutex::default(),
                offers: Offers::default(),
                news: watch::Sender::default(),
                updates: broadcast::channel(MOST_UPDATES).0,
            }
        })
    }

    /// Every server, by name.
    pub fn servers(&self) -> Result<Arc<BTreeMap<ServerName, Arc<Server>>>, McpError> {
        self.registry.servers()
    }

    /// The files that name them.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// What is known about them.
    pub fn book(&self) -> &Book {
        &self.book
    }

    /// The connections to them.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The server of a name.
    pub fn server(&self, name: &str) -> Result<Arc<Server>, McpError> {
        self.registry.server(name)
    }

    /// The tool that an id names, where it names one of a server; `Err` while it is in quarantine.
    pub fn tool(&self, id: &ToolId) -> Result<Option<Arc<Tool>>, McpError> {
        let Some((named, server)) = self.named(id)? else { return Ok(None) };
        let name = match named {
            Named::Method { word, .. } => return Ok(tool::of_method(&server, word).map(Arc::new)),
            Named::Tool { tool, .. } => tool,
        };
        let Some(page) = self.book.page(&server)? else { return Ok(None) };
        let Some(noted) = page.tool(name) else { return Ok(None) };
        if !noted.is_agreed() {
            return Err(quarantined(&server, name, noted.sentence()));
        }
        Ok(self.made(&server, &page).get(name).cloned())
    }

    /// The definition of a server's tool, as it stands in the book.
    pub fn definition(&self, server: &str, tool: &str) -> Option<Value> {
        let server = self.server(server).ok()?;
        let page = self.book.page(&server).ok()??;
        Some(page.tool(tool)?.definition.document())
    }

    /// Every tool of every server that a person has agreed to, as far as is known without asking anybody.
    pub fn tools(&self) -> Vec<Arc<Tool>> {
        let servers = self.servers().unwrap_or_default();
        let known = servers.values().filter_map(|server| {
            let page = self.book.page(server).ok()??;
            Some(self.made(server, &page))
        });
        known.flat_map(|tools| tools.values().cloned().collect::<Vec<_>>()).collect()
    }

    /// Sees to it that what an id names is known: a server whose list of tools is missing or old is asked for it.
    pub async fn ensure(&self, id: &ToolId) -> Result<(), McpError> {
        let Some((Named::Tool { .. }, server)) = self.named(id)? else { return Ok(()) };
        match self.book.page(&server)? {
            Some(page) if page.is_fresh(server.schema_ttl, Timestamp::now()) => Ok(()),
            // Rare, and large.
            known => match (Box::pin(self.refresh(&server.name)).await, known) {
                // What was known stays good enough to plan with; the call itself asks the server anyway.
                (
                    Err(McpError::Unavailable { .. } | McpError::Timeout { .. } | McpError::LateStart { .. }),
                    Some(_),
                )
                | (Ok(_), _) => Ok(()),
                (Err(error), _) => Err(error),
            },
        }
    }

    /// Asks a server for its list of tools now.
    pub async fn refresh(&self, name: &ServerName) -> Result<Arc<Page>, McpError> {
        let server = self.server(name.as_str())?;
        self.permitted(&server)?;
        let connection = self.pool.connect(&server).await?;
        let turn = self.turn(name);
        let _turn = turn.lock().await;
        self.list(&server, &connection).await
    }

    /// Asks a server for something. Whoever calls has decided that it may be asked.
    pub async fn request(
        &self,
        wanted: Wanted<'_>,
        relay: Arc<dyn Relay>,
        cancelled: impl Future<Output = ()> + Send,
    ) -> Result<Answer, McpError> {
        let server = self.server(wanted.server)?;
        self.permitted(&server)?;
        let mut cancelled = std::pin::pin!(cancelled);
        let connection = tokio::select! {
            connection = self.listed_connection(&server) => connection?,
            () = &mut cancelled => return Err(McpError::Cancelled),
        };
        self.agreed(&server, &wanted)?;
        connection.request(wanted.action.method(), wanted.params, relay, cancelled).await
    }

    /// Asks every server whose list is missing or old, each for itself. Nobody waits for them.
    pub fn freshen(self: &Arc<Self>) {
        let now = Timestamp::now();
        for server in self.servers().unwrap_or_default().values() {
            let is_fresh = |page: Arc<Page>| page.is_fresh(server.schema_ttl, now);
            if self.permitted(server).is_ok()
                && !self.book.page(server).is_ok_and(|page| page.is_some_and(is_fresh))
            {
                self.refresh_later(server.name.clone());
            }
        }
    }

    /// Resolves when something was learnt about a server.
    pub fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    /// Addresses of followed resources, as they change.
    pub fn updates(&self) -> broadcast::Receiver<String> {
        self.updates.subscribe()
    }

    /// The servers that said they can do something beside tools: `prompts`, `resources`, `completions`.
    pub fn able(&self, capability: &str) -> Vec<ServerName> {
        let servers = self.servers().unwrap_or_default();
        let is_able = |server: &&Arc<Server>| {
            let page = self.book.page(server).ok().flatten();
            page.is_some_and(|page| {
                page.listing.capabilities.get(capability).is_some_and(|has| !has.is_null())
            })
        };
        servers.values().filter(is_able).map(|server| server.name.clone()).collect()
    }

    /// Ends every connection.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// A connection whose listing is in the book: what a server offers is compared before it is used.
    async fn listed_connection(&self, server: &Server) -> Result<Connection, McpError> {
        let connection = self.pool.connect(server).await?;
        if self.is_listed(server, &connection) {
            return Ok(connection);
        }
        let turn = self.turn(&server.name);
        let _turn = turn.lock().await;
        if !self.is_listed(server, &connection) {
            // Rare, and large.
            Box::pin(self.list(server, &connection)).await?;
        }
        Ok(connection)
    }

    async fn list(&self, server: &Server, connection: &Connection) -> Result<Arc<Page>, McpError> {
        let generation = connection.generation();
        // A change that is told while the list is on its way makes another one necessary.
        lock(&self.listed).insert(server.name.clone(), generation);
        let noted = match connection.list().await {
            Ok(listing) => self.book.note(server, listing),
            Err(error) => Err(error),
        };
        match &noted {
            Ok(_) => self.news.send_modify(|count| *count += 1),
            Err(_) => drop(lock(&self.listed).remove(&server.name)),
        }
        noted
    }

    fn is_listed(&self, server: &Server, connection: &Connection) -> bool {
        lock(&self.listed).get(&server.name) == Some(&connection.generation())
    }

    /// Whether what is asked for is still what was planned and agreed to.
    fn agreed(&self, server: &Server, wanted: &Wanted<'_>) -> Result<(), McpError> {
        let UpstreamAction::Tool(name) = wanted.action else { return Ok(()) };
        let page = self.book.page(server)?;
        match page.as_ref().and_then(|page| page.tool(name)) {
            None => return Err(quarantined(server, name, "its server no longer offers it".to_owned())),
            Some(noted) if !noted.is_agreed() => return Err(quarantined(server, name, noted.sentence())),
            Some(_) => {}
        }
        let Some((id, integrity)) = wanted.planned else { return Ok(()) };
        let now = page.and_then(|page| self.made(server, &page).get(name).cloned());
        match now {
            Some(tool) if tool.manifest.tool_id == *id && tool.integrity == integrity => Ok(()),
            _ => Err(quarantined(server, name, "it changed after the call was planned".to_owned())),
        }
    }

    /// Servers that only the project names need a project that is trusted.
    fn permitted(&self, server: &Server) -> Result<(), McpError> {
        if server.space != Space::Project {
            return Ok(());
        }
        (self.may_contact)()
            .map_err(|problem| McpError::Untrusted { server: server.name.to_string(), problem })
    }

    fn named<'a>(&self, id: &'a ToolId) -> Result<Option<(Named<'a>, Arc<Server>)>, McpError> {
        let Some(named) = Named::read(id) else { return Ok(None) };
        let Some(name) = named.server() else { return Ok(None) };
        Ok(self.servers()?.get(&name).cloned().map(|server| (named, server)))
    }

    fn made(&self, server: &Server, page: &Arc<Page>) -> Arc<BTreeMap<String, Arc<Tool>>> {
        if let Some(made) = lock(&self.made).get(&server.name)
            && Arc::ptr_eq(&made.page, page)
            && made.space == server.space
        {
            return Arc::clone(&made.tools);
        }
        let tools: BTreeMap<String, Arc<Tool>> = page
            .agreed()
            .filter_map(|noted| {
                let tool = tool::of_definition(server, &noted.definition)?;
                Some((noted.definition.name.clone(), Arc::new(tool)))
            })
            .collect();
        let made = Made { page: Arc::clone(page), space: server.space, tools: Arc::new(tools) };
        let tools = Arc::clone(&made.tools);
        lock(&self.made).insert(server.name.clone(), made);
        tools
    }

    /// A server says that its list has changed: it is asked again, now where that is possible, else before its next use.
    fn changed(self: &Arc<Self>, name: &ServerName) {
        lock(&self.listed).remove(name);
        self.offers.forget(name);
        self.refresh_later(name.clone());
    }

    fn refresh_later(self: &Arc<Self>, name: ServerName) {
        let upstreams = Arc::clone(self);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // Whoever needs it next meets the same failure and says so.
                let _ = upstreams.refresh(&name).await;
            });
        }
    }

    fn turn(&self, name: &ServerName) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(lock(&self.turns).entry(name.clone()).or_default())
    }
}

fn quarantined(server: &Server, tool: &str, why: String) -> McpError {
    McpError::Quarantined { tool: format!("{}.{tool}", server.name), server: server.name.to_string(), why }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
