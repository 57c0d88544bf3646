//! Asking a server for everything it offers.

use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use super::connection::Connection;
use super::failure::unavailable;
use crate::definition::{Definition, Listing};
use crate::error::McpError;
use crate::relay::{Relay, Silent};

/// More tools than this are no offer but an attack.
const MOST_TOOLS: usize = 10_000;
/// More pages than this are as good as endless.
const MOST_PAGES: usize = 1_000;
/// How long all definitions together may be, as JSON.
const MOST_BYTES: usize = 32 << 20;
/// JSON-RPC's word for a method that is not there.
const NO_SUCH_METHOD: i32 = -32601;

impl Connection {
    /// Asks for everything the server offers, page by page, in the time its entry gives it to start.
    pub async fn list(&self) -> Result<Listing, McpError> {
        let begun = Instant::now();
        let relay: Arc<dyn Relay> = Arc::new(Silent);
        let wrong = |problem: String| unavailable(self.server.name.as_str(), problem);
        let (mut tools, mut bytes, mut cursors) = (Vec::<Definition>::new(), 0, BTreeSet::new());
        let mut params = json!({});
        for _ in 0..MOST_PAGES {
            let left = self.server.start_timeout.saturating_sub(begun.elapsed());
            let page = self.request_within("tools/list", &params, &relay, left, std::future::pending()).await;
            let page = match page {
                Err(McpError::Protocol { code: NO_SUCH_METHOD, .. }) if !self.has_tools() => break,
                Err(McpError::Timeout { server, .. }) => {
                    let seconds = super::start::whole(self.server.start_timeout);
                    return Err(McpError::LateStart { server, seconds });
                }
                page => page?,
            };
            let offered = page.result.get("tools").and_then(Value::as_array);
            let offered = offered.ok_or_else(|| wrong("answered `tools/list` without a list".into()))?;
            for tool in offered {
                let definition: Definition = serde_json::from_value(tool.clone())
                    .map_err(|error| wrong(format!("offers a tool that cannot be read: {error}")))?;
                // The protocol wants a tool left out whose parameters cannot be sent as it asks.
                if page.usable.as_ref().is_some_and(|usable| !usable.contains(&definition.name)) {
                    continue;
                }
                bytes += tool.to_string().len();
                tools.push(definition);
            }
            if tools.len() > MOST_TOOLS || bytes > MOST_BYTES {
                return Err(wrong("offers more tools than anybody can use".into()));
            }
            let Some(cursor) = page.result.get("nextCursor").and_then(Value::as_str) else { break };
            if !cursors.insert(cursor.to_owned()) || cursors.len() == MOST_PAGES {
                return Err(wrong("lists its tools without end".into()));
            }
            params = json!({"cursor": cursor});
        }
        let about = &self.live().about;
        Ok(Listing {
            tools,
            server_info: about.server_info.clone(),
            instructions: about.instructions.clone(),
            protocol_version: about.protocol_version.clone(),
            capabilities: about.capabilities.clone(),
            at: Timestamp::now(),
        })
    }

    fn has_tools(&self) -> bool {
        self.live().about.capabilities.get("tools").is_some()
    }
}
