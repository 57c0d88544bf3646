//! What can go wrong with an endpoint.

use kiwi_model::{ErrorKind, Explain};
use serde_json::{Value, json};
use std::net::SocketAddr;

/// Why an endpoint does not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address cannot be listened on.
    #[error("cannot listen on `{at}`: {problem}")]
    Listen {
        /// Which.
        at: SocketAddr,
        /// Why.
        problem: String,
    },
    /// Anybody could call it.
    #[error("`{at}` can be reached from elsewhere, and no token is asked for")]
    Open {
        /// Which.
        at: SocketAddr,
    },
    /// The client and the server did not come to terms.
    #[error("the connection did not begin: {problem}")]
    Handshake {
        /// Why.
        problem: String,
    },
}

impl Explain for ServerError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Listen { .. } | Self::Open { .. } => ErrorKind::Usage,
            Self::Handshake { .. } => ErrorKind::ToolFailed,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Listen { .. } => "choose another with --port; `--port 0` takes a free one".to_owned(),
            Self::Open { .. } => "give one with --token-file, or listen on 127.0.0.1".to_owned(),
            Self::Handshake { .. } => "a client begins with `initialize` or `server/discover`".to_owned(),
        })
    }

    fn details(&self) -> Value {
        match self {
            Self::Listen { at, .. } | Self::Open { at } => json!({"address": at.to_string()}),
            Self::Handshake { .. } => Value::Null,
        }
    }
}
