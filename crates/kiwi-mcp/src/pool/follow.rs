//! Resources that somebody follows. Older servers are asked to tell of each; with newer ones a stream is kept for each.

use rmcp::model::SubscriptionFilter;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::AbortHandle;

use super::failure::{Trouble, of_request, unavailable};
use super::live::Live;
use crate::error::McpError;

/// More streams than this to one server are too many.
const MOST: usize = 256;

/// The streams that are kept, by address of what is followed. They end with the connection.
#[derive(Default)]
pub(super) struct Followed(Mutex<HashMap<String, AbortHandle>>);

impl Followed {
    fn insert(&self, uri: &str, stream: AbortHandle) {
        if let Some(old) = self.lock().insert(uri.to_owned(), stream) {
            old.abort();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, AbortHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.lock().values().for_each(AbortHandle::abort);
    }
}

/// What a server of the new revision has no method for: following a resource, and not following it any more. `None`
/// where it is to be asked as it is.
pub(super) async fn follow(
    live: &Arc<Live>,
    method: &str,
    params: &Value,
) -> Option<Result<Value, McpError>> {
    if !live.about.is_new {
        return None;
    }
    let uri = params.get("uri").and_then(Value::as_str).unwrap_or_default();
    match method {
        // Rare, and large: it must not make every request's future so.
        "resources/subscribe" => Some(Box::pin(begin(live, uri)).await.map(|()| json!({}))),
        "resources/unsubscribe" => {
            if let Some(stream) = live.followed.lock().remove(uri) {
                stream.abort();
            }
            Some(Ok(json!({})))
        }
        _ => None,
    }
}

async fn begin(live: &Arc<Live>, uri: &str) -> Result<(), McpError> {
    if live.followed.lock().len() >= MOST {
        return Err(unavailable(&live.server, "is followed in too many ways already"));
    }
    let filter = SubscriptionFilter::builder().resource_subscription(uri).build();
    let subscription = live.peer.listen(filter).await;
    let mut subscription = subscription.map_err(|error| match of_request(&live.server, error) {
        Trouble::Failed(error) => error,
        _ => unavailable(&live.server, "cannot be followed now"),
    })?;
    // News themselves are heard where they arrive; this only keeps the stream.
    let kept = tokio::spawn(async move { while let Ok(Some(_)) = subscription.next().await {} });
    live.followed.insert(uri, kept.abort_handle());
    Ok(())
}
