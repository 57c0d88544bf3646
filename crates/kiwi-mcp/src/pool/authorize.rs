//! The part of asking for access that needs a person.

use crate::relay::RelayFuture;
use crate::server::ServerName;

/// Asks a person for access to a server. Only a face can: it opens a browser and listens for the way back.
pub trait Authorize: Send + Sync {
    /// Where the authorization server sends the person back to.
    fn redirect_uri(&self) -> String;

    /// Who Kiwi is to the authorization server of this server, where that was agreed before.
    fn identity(&self, server: &ServerName) -> Identity {
        let _ = server;
        Identity::default()
    }

    /// Sends a person to an address and waits for the whole address they were sent back to. An error says why they
    /// were not.
    fn authorize(&self, server: &ServerName, url: String) -> RelayFuture<'_, Result<String, String>>;
}

/// Who Kiwi is to an authorization server. What is not known is registered when it is needed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// A name that was agreed before.
    pub client_id: Option<String>,
    /// The secret that goes with it.
    pub client_secret: Option<String>,
    /// Where Kiwi describes itself.
    pub metadata_url: Option<String>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity")
            .field("client_id", &self.client_id)
            .field("metadata_url", &self.metadata_url)
            .finish_non_exhaustive()
    }
}
