//! What a tool of the system may have done with the user's key and token once it has ended well: a publication.

use kiwi_model::{ErrorKind, Fault, ToolId, ToolRef};
use serde_json::{Value, json};

use super::dispatch::Dispatch;
use super::sign::{is_for, with};
use crate::sharing::{Parts, Publish, Sharing};
use crate::stage::{Call, Reply};

impl Dispatch {
    /// Publishes what the tool found sound, where its manifest says that this is what it is for: to the registry that the
    /// user names, never to one that a caller does. No process ever sees the key or the token.
    pub(super) async fn published(&self, call: &Call<'_>, reply: Reply) -> Reply {
        if reply.failure.is_some() || !is_for(call, "publishes") {
            return reply;
        }
        match self.publish(call).await {
            Ok(published) => with(reply, &published),
            Err(fault) => Reply { failure: Some(fault), ..reply },
        }
    }

    async fn publish(&self, call: &Call<'_>) -> Result<Value, Fault> {
        let id = call.params.get("item_id").and_then(Value::as_str).unwrap_or_default();
        let id = ToolId::parse(id).map_err(|error| Fault::new(ErrorKind::NotFound, error.to_string()))?;
        let parts = Parts {
            planner: &self.planner,
            preparer: &self.preparer,
            vault: &self.vault,
            host: &self.host,
            config: &self.config,
        };
        let sharing = Sharing::new(parts, None)?;
        let published = sharing.publish(&ToolRef::from(id), Publish::default(), &|_, _| ()).await?;
        Ok(json!({
            "outcome": published.state, "tool_id": published.tool_id, "version": published.version,
            "integrity": published.integrity, "key": published.key, "registry": sharing.registry().url(),
        }))
    }
}
