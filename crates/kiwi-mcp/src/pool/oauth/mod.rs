//! Access by OAuth: the protocol library knows the way (discovery, PKCE, issuers, scopes, refreshing), a person says
//! yes, and tokens lie in a private folder.

mod http;
mod store;

use rmcp::transport::auth::{
    AuthClient, AuthError, AuthorizationManager, AuthorizationMetadata, OAuthClientConfig,
};
use rmcp::transport::{AuthorizationRequest, AuthorizationSession, WWWAuthenticateParams};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::Mutex;

use super::authorize::{Authorize, Identity};
use super::failure::{unauthorized, unavailable};
use super::surroundings::Surroundings;
use super::wire::Wire;
use crate::error::McpError;
use crate::server::{Server, ServerName};
use http::Requests;
use store::{Registration, Store};

/// The name by which authorization servers know Kiwi.
const NAME: &str = "Kiwi";

/// How a server is told who asks.
pub(super) struct Access {
    server: ServerName,
    url: String,
    client: AuthClient<Wire>,
    requests: Arc<Requests>,
    store: Store,
    authorize: Option<Arc<dyn Authorize>>,
    /// Held while a person is asked.
    asking: Mutex<()>,
}

impl Access {
    /// Access with the tokens there are.
    pub async fn new(
        server: &Server,
        url: &str,
        around: &Surroundings,
        wire: Wire,
    ) -> Result<Self, McpError> {
        let name = server.name.as_str();
        let requests = Arc::new(Requests::new(Arc::clone(&around.http), url));
        let store = Store::new(&around.tokens, &server.name, url);
        let mut manager = manager(name, url, &requests, &store).await?;
        let known = manager.initialize_from_store().await;
        if known.map_err(|error| failed(name, error))? {
            // The library keeps a registration's name and not its secret.
            let registration = store.registration().await?;
            if let Some(Registration { client_id, client_secret: Some(secret), redirect_uri, .. }) =
                registration
            {
                let config = OAuthClientConfig::new(client_id, redirect_uri).with_client_secret(secret);
                manager.configure_client(config).map_err(|error| failed(name, error))?;
            }
        }
        Ok(Self {
            server: server.name.clone(),
            url: url.to_owned(),
            client: AuthClient::new(wire, manager),
            requests,
            store,
            authorize: around.authorize.clone(),
            asking: Mutex::new(()),
        })
    }

    /// The way to the endpoint that says who asks.
    pub fn client(&self) -> AuthClient<Wire> {
        self.client.clone()
    }

    /// Asks a person for the access that a challenge wants.
    pub async fn log_in(&self, challenge: &str) -> Result<(), McpError> {
        let name = self.server.as_str();
        let nobody =
            || unauthorized(name, format!("it wants `{challenge}`, and nobody is here who could agree"));
        let authorize = self.authorize.as_ref().ok_or_else(nobody)?;
        let Ok(_asking) = self.asking.try_lock() else {
            // Somebody is being asked already; what they agree to is good for this caller too.
            drop(self.asking.lock().await);
            return Ok(());
        };
        let mut manager = manager(name, &self.url, &self.requests, &self.store).await?;
        let found = manager.resolve_metadata_from_challenge(Some(challenge)).await;
        let metadata = found.map_err(|error| failed(name, error))?.metadata;
        manager.set_metadata(metadata.clone());
        let scopes = self.scopes(&manager, challenge).await?;
        let redirect_uri = authorize.redirect_uri();
        let identity = authorize.identity(&self.server);
        let mut request = AuthorizationRequest::new(&redirect_uri)
            .with_client_name(NAME)
            .with_initial_scope_selection()
            .with_challenge(challenge)
            .with_scopes(scopes.clone());
        request = match self.identify(&mut manager, &metadata, identity, &redirect_uri, &scopes).await? {
            Known::Client { client_id, client_secret: Some(secret) } => {
                request.with_preregistered_client(client_id).with_client_secret(secret)
            }
            Known::Client { client_id, client_secret: None } => request.with_preregistered_client(client_id),
            Known::Document(url) => request.with_client_metadata_url(url),
        };
        let session = AuthorizationSession::new(manager, request).await;
        let session = session.map_err(|(_, error)| failed(name, error))?;
        let url = session.get_authorization_url().to_owned();
        let back = authorize.authorize(&self.server, url).await;
        let back = back.map_err(|problem| unauthorized(name, problem))?;
        session.handle_callback_url(&back).await.map_err(|error| failed(name, error))?;
        *self.client.auth_manager.lock().await = session.auth_manager;
        Ok(())
    }

    /// What to ask for: what the challenge wants, beside what was granted before.
    async fn scopes(&self, manager: &AuthorizationManager, challenge: &str) -> Result<Vec<String>, McpError> {
        let mut scopes = manager.select_initial_scopes(&[]).await;
        let params = reqwest::Url::parse(&self.url).map(|url| WWWAuthenticateParams::parse(challenge, &url));
        if params.is_ok_and(|params| params.is_insufficient_scope()) {
            let granted = self.store.granted().await?;
            scopes.extend(granted.into_iter().filter(|scope| !scopes.contains(scope)).collect::<Vec<_>>());
        }
        Ok(scopes)
    }

    /// Who Kiwi is to this authorization server: as agreed, by its own document, as registered before, or registered
    /// now.
    async fn identify(
        &self,
        manager: &mut AuthorizationManager,
        metadata: &AuthorizationMetadata,
        identity: Identity,
        redirect_uri: &str,
        scopes: &[String],
    ) -> Result<Known, McpError> {
        if let Some(client_id) = identity.client_id {
            return Ok(Known::Client { client_id, client_secret: identity.client_secret });
        }
        let reads_documents = metadata.additional_fields.get("client_id_metadata_document_supported");
        if let Some(url) = identity.metadata_url
            && reads_documents == Some(&serde_json::Value::Bool(true))
        {
            return Ok(Known::Document(url));
        }
        let is_same = |known: &Registration| {
            known.issuer.is_some() && known.issuer == metadata.issuer && known.redirect_uri == redirect_uri
        };
        let known = self.store.registration().await?.filter(is_same);
        let registration = if let Some(known) = known {
            known
        } else {
            let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
            let config = manager.register_client(NAME, redirect_uri, &scopes).await;
            let config = config.map_err(|error| failed(self.server.as_str(), error))?;
            let registration = Registration {
                issuer: metadata.issuer.clone(),
                client_id: config.client_id,
                client_secret: config.client_secret,
                redirect_uri: redirect_uri.to_owned(),
            };
            self.store.register(registration.clone()).await?;
            registration
        };
        let Registration { client_id, client_secret, .. } = registration;
        Ok(Known::Client { client_id, client_secret })
    }
}

/// Forgets a server's tokens; says whether there were any.
pub(super) fn log_out(tokens: &Path, server: &ServerName, url: &str) -> Result<bool, McpError> {
    Store::new(tokens, server, url).remove()
}

/// How an authorization server knows Kiwi.
enum Known {
    Client { client_id: String, client_secret: Option<String> },
    Document(String),
}

async fn manager(
    name: &str,
    url: &str,
    requests: &Arc<Requests>,
    store: &Store,
) -> Result<AuthorizationManager, McpError> {
    let requests: Arc<dyn rmcp::transport::OAuthHttpClient> = Arc::clone(requests) as _;
    let manager = AuthorizationManager::new_with_oauth_http_client(url, requests).await;
    let mut manager = manager.map_err(|error| failed(name, error))?;
    manager.set_credential_store(store.clone());
    Ok(manager)
}

fn failed(name: &str, error: AuthError) -> McpError {
    match error {
        AuthError::CredentialStoreError(problem) => McpError::Store { problem },
        AuthError::HttpError(error) => {
            unavailable(name, format!("has an authorization server that fails: {error}"))
        }
        other => unauthorized(name, other.to_string()),
    }
}
