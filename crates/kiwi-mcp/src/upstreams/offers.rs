//! Lists beside the list of tools: prompts, resources and their templates. They are read like a catalogue, kept for a
//! while, and never block each other.

use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::{Upstreams, lock};
use crate::error::McpError;
use crate::relay::Silent;
use crate::server::{Server, ServerName};

/// A server with more pages than this has no end.
const MOST_PAGES: usize = 64;

/// A list that a server can give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Offer {
    /// Its prompts.
    Prompts,
    /// Its resources.
    Resources,
    /// The templates of its resources.
    Templates,
}

impl Offer {
    /// The capability a server says it has, the method, and the key of the list in the answer.
    const fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Prompts => ("prompts", "prompts/list", "prompts"),
            Self::Resources => ("resources", "resources/list", "resources"),
            Self::Templates => ("resources", "resources/templates/list", "resourceTemplates"),
        }
    }
}

/// What was listed, and when.
#[derive(Default)]
pub(super) struct Offers(Mutex<HashMap<(ServerName, Offer), Kept>>);

#[derive(Clone)]
struct Kept {
    at: Instant,
    items: Arc<Vec<Value>>,
}

impl Offers {
    /// Forgets what a server offered.
    pub fn forget(&self, name: &ServerName) {
        lock(&self.0).retain(|(server, _), _| server != name);
    }

    fn get(&self, name: &ServerName, offer: Offer, ttl: Duration) -> Option<Arc<Vec<Value>>> {
        let kept = lock(&self.0).get(&(name.clone(), offer)).cloned()?;
        (kept.at.elapsed() < ttl).then_some(kept.items)
    }
}

impl Upstreams {
    /// A list of every server that has one, by server. Each is asked for itself; one that takes too long is left out,
    /// and what it says later is there the next time.
    pub async fn offers(
        self: &Arc<Self>,
        offer: Offer,
        patience: Duration,
    ) -> Vec<(ServerName, Arc<Vec<Value>>)> {
        let (capability, ..) = offer.words();
        let asked: Vec<_> = self
            .able(capability)
            .into_iter()
            .map(|name| {
                let (upstreams, asked) = (Arc::clone(self), name.clone());
                (name, tokio::spawn(async move { upstreams.offered(&asked, offer).await }))
            })
            .collect();
        let until = tokio::time::Instant::now() + patience;
        let mut all = Vec::new();
        for (name, task) in asked {
            if let Ok(Ok(Ok(items))) = tokio::time::timeout_at(until, task).await {
                all.push((name, items));
            }
        }
        all
    }

    /// A list of a server, as it gave it; empty where it has none.
    pub async fn offered(&self, name: &ServerName, offer: Offer) -> Result<Arc<Vec<Value>>, McpError> {
        let server = self.server(name.as_str())?;
        if let Some(items) = self.offers.get(name, offer, server.schema_ttl) {
            return Ok(items);
        }
        self.permitted(&server)?;
        let items = Arc::new(self.ask_for(&server, offer).await?);
        let kept = Kept { at: Instant::now(), items: Arc::clone(&items) };
        lock(&self.offers.0).insert((name.clone(), offer), kept);
        Ok(items)
    }

    async fn ask_for(&self, server: &Server, offer: Offer) -> Result<Vec<Value>, McpError> {
        let connection = self.listed_connection(server).await?;
        let (capability, method, key) = offer.words();
        if !self.able(capability).contains(&server.name) {
            return Ok(Vec::new());
        }
        let mut items = Vec::new();
        let mut cursor = Value::Null;
        for _ in 0..MOST_PAGES {
            let params = match &cursor {
                Value::Null => serde_json::json!({}),
                cursor => serde_json::json!({"cursor": cursor}),
            };
            let answer =
                connection.request(method, params, Arc::new(Silent), std::future::pending()).await?.0;
            items.extend(answer.get(key).and_then(Value::as_array).cloned().unwrap_or_default());
            cursor = answer.get("nextCursor").cloned().unwrap_or_default();
            if cursor.is_null() {
                break;
            }
        }
        Ok(items)
    }
}
