//! Looking after credentials: what `kiwi auth` does.

use jiff::Timestamp;
use kiwi_model::{Explain, Fault, Secret};
use kiwi_space::{Credential, KeeperProblem, Refresh};
use std::collections::BTreeMap;

use crate::kernel::Kernel;
use crate::oauth::{self, DeviceCode};
use crate::vault::{Vault, guard_memory};

/// The user's credentials, and how they are had.
pub struct Auth<'a> {
    vault: &'a Vault,
}

/// How a token is got for the first time.
#[derive(Debug, Clone)]
pub struct Login {
    /// Where tokens are given.
    pub token_url: String,
    /// Where a person's login begins; without it the client asks in its own name.
    pub device_url: Option<String>,
    /// As whom.
    pub client_id: String,
    /// The client's own secret.
    pub client_secret: Option<Secret>,
    /// What for.
    pub scopes: Vec<String>,
}

impl Kernel {
    /// The user's credentials. Asked for before a secret is typed, so that from then on nothing shows this process's
    /// memory.
    pub fn auth(&self) -> Result<Auth<'_>, Fault> {
        self.vault.auth()
    }

    /// Whether a keyring keeps the key of the credentials, and if not, why not.
    pub fn keyring(&self) -> Result<(), KeeperProblem> {
        self.vault.keeper.get("").map(drop)
    }
}

impl Vault {
    pub(crate) fn auth(&self) -> Result<Auth<'_>, Fault> {
        guard_memory()?;
        Ok(Auth { vault: self })
    }
}

impl Auth<'_> {
    /// All of them, by name.
    pub fn all(&self) -> Result<BTreeMap<String, Credential>, Fault> {
        self.vault.store()?.all().map_err(|error| error.fault())
    }

    /// Stores a secret; says whether there was one of that name.
    pub fn set(&self, name: &str, secret: Secret) -> Result<bool, Fault> {
        let credential = Credential::plain(secret, Timestamp::now());
        self.vault.store()?.set(name, credential).map_err(|error| error.fault())
    }

    /// Removes a credential; says whether there was one.
    pub fn remove(&self, name: &str) -> Result<bool, Fault> {
        self.vault.store()?.remove(name).map_err(|error| error.fault())
    }

    /// Gets a token and stores it. A login that a person has to finish is shown by `tell`.
    pub async fn login(
        &self,
        name: &str,
        login: Login,
        tell: &dyn Fn(&DeviceCode),
    ) -> Result<Credential, Fault> {
        let Login { token_url, device_url, client_id, client_secret, scopes } = login;
        let refresh = Refresh { token_url, client_id, client_secret, token: None };
        let http = &self.vault.http;
        let token = match device_url {
            Some(device_url) => {
                let code = oauth::begin_device(http, &device_url, &refresh, &scopes).await?;
                tell(&code);
                oauth::finish_device(http, &code, &refresh).await?
            }
            None => oauth::client_token(http, &refresh, &scopes).await?,
        };
        let credential = token.into_credential(refresh, &scopes);
        self.vault.store()?.set(name, credential.clone()).map_err(|error| error.fault())?;
        Ok(credential)
    }
}
