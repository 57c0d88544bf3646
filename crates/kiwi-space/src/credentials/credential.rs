//! One credential: a secret, and for a token what is known about it.

use jiff::Timestamp;
use kiwi_model::Secret;
use serde::{Deserialize, Serialize};

/// A stored credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// What is handed to tools: a password, a key, an access token.
    pub secret: Secret,
    /// When it stops being good.
    pub expires_at: Option<Timestamp>,
    /// How a new one is had.
    pub refresh: Option<Refresh>,
    /// What a token may be used for.
    pub scopes: Vec<String>,
    /// When it was stored.
    pub stored_at: Timestamp,
}

/// How a new access token is had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refresh {
    /// Where to ask.
    pub token_url: String,
    /// As whom.
    pub client_id: String,
    /// The client's own secret, where it has one.
    pub client_secret: Option<Secret>,
    /// The refresh token; without one the client asks in its own name.
    pub token: Option<Secret>,
}

impl Credential {
    /// A secret about which nothing else is known.
    pub fn plain(secret: Secret, stored_at: Timestamp) -> Self {
        Self { secret, expires_at: None, refresh: None, scopes: Vec::new(), stored_at }
    }

    /// Whether it is no longer good.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= now)
    }
}

/// A credential as the encrypted file holds it. Only this form can be serialised, and only into that file.
#[derive(Serialize, Deserialize)]
pub(super) struct Written {
    secret: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh: Option<WrittenRefresh>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    scopes: Vec<String>,
    stored_at: Timestamp,
}

#[derive(Serialize, Deserialize)]
struct WrittenRefresh {
    token_url: String,
    client_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_secret: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

impl From<&Credential> for Written {
    fn from(credential: &Credential) -> Self {
        let expose = |secret: &Secret| secret.expose().to_owned();
        Self {
            secret: expose(&credential.secret),
            expires_at: credential.expires_at,
            refresh: credential.refresh.as_ref().map(|refresh| WrittenRefresh {
                token_url: refresh.token_url.clone(),
                client_id: refresh.client_id.clone(),
                client_secret: refresh.client_secret.as_ref().map(expose),
                token: refresh.token.as_ref().map(expose),
            }),
            scopes: credential.scopes.clone(),
            stored_at: credential.stored_at,
        }
    }
}

impl From<Written> for Credential {
    fn from(written: Written) -> Self {
        Self {
            secret: Secret::new(written.secret),
            expires_at: written.expires_at,
            refresh: written.refresh.map(|refresh| Refresh {
                token_url: refresh.token_url,
                client_id: refresh.client_id,
                client_secret: refresh.client_secret.map(Secret::new),
                token: refresh.token.map(Secret::new),
            }),
            scopes: written.scopes,
            stored_at: written.stored_at,
        }
    }
}
