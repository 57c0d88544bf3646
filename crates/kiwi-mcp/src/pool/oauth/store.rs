//! Where tokens lie: one private file for each server.

use kiwi_model::Digest;
use kiwi_space::PrivateFolder;
use rmcp::transport::auth::{AuthError, CredentialRefreshGuard, CredentialStore, StoredCredentials};
use serde::{Deserialize, Serialize};
use std::path::Path;

use crate::error::McpError;
use crate::relay::RelayFuture;
use crate::server::ServerName;

/// The file of one server at one address.
#[derive(Debug, Clone)]
pub(super) struct Store {
    folder: PrivateFolder,
    file: String,
}

/// What the file holds.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    credentials: Option<StoredCredentials>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    registration: Option<Registration>,
}

/// How Kiwi was registered with an authorization server.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Registration {
    pub issuer: Option<String>,
    pub client_id: String,
    pub client_secret: Option<String>,
    pub redirect_uri: String,
}

impl Store {
    pub fn new(tokens: &Path, server: &ServerName, url: &str) -> Self {
        // A token is for one address; another server of the same name must not get it.
        let place: String = Digest::of(url.as_bytes()).hex().chars().take(16).collect();
        Self { folder: PrivateFolder::new(tokens.to_owned()), file: format!("{server}-{place}.json") }
    }

    /// How Kiwi was registered.
    pub async fn registration(&self) -> Result<Option<Registration>, McpError> {
        self.look(|kept| kept.registration).await
    }

    /// What was granted before.
    pub async fn granted(&self) -> Result<Vec<String>, McpError> {
        self.look(|kept| kept.credentials.map(|known| known.granted_scopes).unwrap_or_default()).await
    }

    /// Notes how Kiwi was registered.
    pub async fn register(&self, registration: Registration) -> Result<(), McpError> {
        self.change(move |kept| kept.registration = Some(registration)).await
    }

    /// Removes the file; says whether it was there.
    pub fn remove(&self) -> Result<bool, McpError> {
        self.folder.remove(&self.file).map_err(|error| McpError::Store { problem: error.to_string() })
    }

    fn read(&self) -> Result<Kept, McpError> {
        let problem = |problem: String| McpError::Store { problem };
        let bytes = self.folder.read(&self.file).map_err(|error| problem(error.to_string()))?;
        let Some(bytes) = bytes else { return Ok(Kept::default()) };
        // What is in it is a secret, so the parser's words are not repeated.
        serde_json::from_slice(&bytes)
            .map_err(|_| problem(format!("`{}` cannot be read", self.folder.file(&self.file).display())))
    }

    async fn look<T: Send + 'static>(
        &self,
        take: impl FnOnce(Kept) -> T + Send + 'static,
    ) -> Result<T, McpError> {
        let store = self.clone();
        beside(move || store.read().map(take)).await
    }

    async fn change(&self, change: impl FnOnce(&mut Kept) + Send + 'static) -> Result<(), McpError> {
        let store = self.clone();
        beside(move || {
            let mut kept = store.read()?;
            change(&mut kept);
            let problem = |problem: String| McpError::Store { problem };
            let bytes = serde_json::to_vec(&kept).map_err(|error| problem(error.to_string()))?;
            store.folder.write(&store.file, &bytes).map_err(|error| problem(error.to_string()))
        })
        .await
    }
}

/// Files are waited for on another thread.
async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, McpError> + Send + 'static,
) -> Result<T, McpError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(McpError::Store { problem: error.to_string() }))
}

fn broken(error: McpError) -> AuthError {
    match error {
        McpError::Store { problem } => AuthError::CredentialStoreError(problem),
        other => AuthError::CredentialStoreError(other.to_string()),
    }
}

impl CredentialStore for Store {
    fn load<'life0, 'async_trait>(
        &'life0 self,
    ) -> RelayFuture<'async_trait, Result<Option<StoredCredentials>, AuthError>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async { self.look(|kept| kept.credentials).await.map_err(broken) })
    }

    fn save<'life0, 'async_trait>(
        &'life0 self,
        credentials: StoredCredentials,
    ) -> RelayFuture<'async_trait, Result<(), AuthError>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async { self.change(|kept| kept.credentials = Some(credentials)).await.map_err(broken) })
    }

    fn clear<'life0, 'async_trait>(&'life0 self) -> RelayFuture<'async_trait, Result<(), AuthError>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async { self.change(|kept| *kept = Kept::default()).await.map_err(broken) })
    }

    fn acquire_refresh_guard<'life0, 'async_trait>(
        &'life0 self,
    ) -> RelayFuture<'async_trait, Result<Option<CredentialRefreshGuard>, AuthError>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        let folder = self.folder.clone();
        Box::pin(async move {
            // Two Kiwis that refresh at once would each use up the other's token.
            let turn = beside(move || {
                let problem = |error: kiwi_space::SpaceError| McpError::Store { problem: error.to_string() };
                folder.make().map_err(problem)?;
                folder.turn().map_err(problem)
            });
            turn.await.map(|turn| Some(CredentialRefreshGuard::new(turn))).map_err(broken)
        })
    }
}
