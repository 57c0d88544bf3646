//! What a face asks for.

use kiwi_chain::read_assignment;
use kiwi_exec::{Unwatched, Watch};
use kiwi_mcp::{Relay, Silent};
use kiwi_model::lockfile::LockMode;
use kiwi_model::{Isolation, ToolRef};
use kiwi_space::{ProfileLayer, Transport};
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio::sync::watch;

use crate::approvals::Pending;

/// Who asks: `cli:<user>`, `mcp:<client>`, `directive:<name>#<session>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Caller(String);

impl Caller {
    /// As much of a client's name as is kept.
    const MOST_OF_A_NAME: usize = 64;

    /// A person at a terminal.
    pub fn cli(user: &str) -> Self {
        Self(format!("cli:{user}"))
    }

    /// An agent's client, by the name it gives itself. Nothing is decided by that name.
    pub fn mcp(client: &str) -> Self {
        let name: String = client.chars().filter(|c| !c.is_control()).take(Self::MOST_OF_A_NAME).collect();
        Self(format!("mcp:{}", if name.is_empty() { "unknown" } else { &name }))
    }

    /// As records show it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One connected client, one command, or one directive run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Session(uuid::Uuid);

impl Session {
    /// A new session.
    pub fn start() -> Self {
        Self(uuid::Uuid::now_v7())
    }
}

impl std::fmt::Display for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The parameters of a call, as a face has them.
#[derive(Debug, Clone, Default)]
pub struct Arguments {
    /// Already structured.
    pub object: Map<String, Value>,
    /// `name=text`, to be read as the tool's schema says; these win.
    pub assignments: Vec<(String, String)>,
}

impl Arguments {
    /// The parameters these arguments mean for a tool with this schema.
    pub(crate) fn read(self, schema: Option<&Value>) -> Map<String, Value> {
        let mut params = self.object;
        for (name, text) in self.assignments {
            let value = read_assignment(schema, &name, &text);
            params.insert(name, value);
        }
        params
    }
}

impl From<Map<String, Value>> for Arguments {
    fn from(object: Map<String, Value>) -> Self {
        Self { object, assignments: Vec::new() }
    }
}

/// Ends a call from outside. Cloned freely; once fired it stays fired.
#[derive(Debug, Clone)]
pub struct Cancel {
    fire: Arc<watch::Sender<bool>>,
}

impl Default for Cancel {
    fn default() -> Self {
        Self { fire: Arc::new(watch::channel(false).0) }
    }
}

impl Cancel {
    /// Ends the call.
    pub fn fire(&self) {
        self.fire.send_replace(true);
    }

    /// Resolves once the call is to end.
    pub async fn fired(&self) {
        let mut fired = self.fire.subscribe();
        // The sender lives as long as `self`, so waiting can only end by the value.
        let _ = fired.wait_for(|fired| *fired).await;
    }
}

/// Is told what a call waits for.
pub type OnPending = Arc<dyn Fn(&Pending) + Send + Sync>;

/// A call, before anything is known about it.
#[derive(Clone)]
pub struct Request {
    /// What to call.
    pub tool: ToolRef,
    /// With what.
    pub arguments: Arguments,
    /// Who asks.
    pub caller: Caller,
    /// In which session.
    pub session: Session,
    /// What to do about its lockfile; the configuration may demand more.
    pub lock: Option<LockMode>,
    /// At least this tightly.
    pub isolation: Option<Isolation>,
    /// The way it came in, which decides about its profile.
    pub transport: Transport,
    /// A profile that is to hold as well.
    pub narrower: Option<String>,
    /// Lists of permissions that are to hold as well. One that could not be read permits nothing.
    pub permissions: Vec<Result<ProfileLayer, String>>,
    /// The version of the rules that the caller relies on.
    pub rules_version: Option<String>,
    /// Whether a person is there to answer.
    pub is_interactive: bool,
    /// Waits for a person's answer where one is asked for, and is told what is waited for. Without it the call ends.
    pub on_ask: Option<OnPending>,
    /// Stop before the effect and say what would happen.
    pub dry_run: bool,
    /// Sees output while the tool runs.
    pub watch: Arc<dyn Watch>,
    /// Hears and answers what an upstream server says and asks while it works.
    pub relay: Arc<dyn Relay>,
    /// Ends the call from outside.
    pub cancel: Cancel,
}

impl Request {
    /// A plain call.
    pub fn new(tool: ToolRef, arguments: impl Into<Arguments>, caller: Caller, session: Session) -> Self {
        Self {
            tool,
            arguments: arguments.into(),
            caller,
            session,
            lock: None,
            isolation: None,
            transport: Transport::Cli,
            narrower: None,
            permissions: Vec::new(),
            rules_version: None,
            is_interactive: false,
            on_ask: None,
            dry_run: false,
            watch: Arc::new(Unwatched),
            relay: Arc::new(Silent),
            cancel: Cancel::default(),
        }
    }
}
