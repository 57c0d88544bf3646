//! Secrets for calls: found by the names a chain declares, renewed when they are old, handed to the effect alone.

use jiff::{SignedDuration, Timestamp};
use kiwi_chain::Plan;
use kiwi_exec::{HttpClient, keep_memory_private};
use kiwi_model::{ErrorKind, Explain, Fault, Secret};
use kiwi_space::{Credential, Credentials, KeyKeeper, Spaces};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::oauth;

/// A token this close to its end is renewed: the call takes time too.
const MARGIN: SignedDuration = SignedDuration::from_secs(30);

/// The secrets of one call, by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Secrets(BTreeMap<String, Secret>);

impl Secrets {
    /// The secret of this name.
    pub fn get(&self, name: &str) -> Option<&Secret> {
        self.0.get(name)
    }

    #[cfg(test)]
    pub fn of(secrets: &[(&str, &str)]) -> Self {
        Self(secrets.iter().map(|(name, value)| ((*name).to_owned(), Secret::new(*value))).collect())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Secret)> {
        self.0.iter().map(|(name, secret)| (name.as_str(), secret))
    }

    /// The variables they become in a tool's environment: `github_token` is `GITHUB_TOKEN`.
    pub fn variables(&self) -> impl Iterator<Item = (String, &Secret)> {
        self.iter().map(|(name, secret)| {
            let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
            (name.chars().map(upper).collect(), secret)
        })
    }
}

/// The door to the credential store.
pub(crate) struct Vault {
    pub spaces: Arc<Spaces>,
    pub http: Arc<HttpClient>,
    pub keeper: Arc<dyn KeyKeeper>,
}

impl Vault {
    /// The store. Whoever opens it is about to hold secrets: from here on no core file of this process is made.
    pub fn store(&self) -> Result<Credentials, Fault> {
        guard_memory()?;
        let store = self.spaces.credentials().map_err(|error| error.fault())?;
        Ok(store.kept_by(Arc::clone(&self.keeper)))
    }

    /// The credentials a chain declares, all of them good or renewable; else what is missing and how it is had.
    pub fn declared(&self, plan: &Plan) -> Result<BTreeMap<String, Credential>, Fault> {
        let names = plan.secrets();
        let scopes: Vec<&String> =
            plan.tools().iter().filter_map(|tool| tool.manifest.required_scope.as_ref()).collect();
        if names.is_empty() && scopes.is_empty() {
            return Ok(BTreeMap::new());
        }
        let all = self.store()?.all().map_err(|error| error.fault())?;
        let mut found = BTreeMap::new();
        for name in names {
            let credential = all.get(&name).ok_or_else(|| missing(&name))?;
            found.insert(name, credential.clone());
        }
        for scope in scopes {
            let holder = all.iter().find(|(_, credential)| credential.scopes.contains(scope));
            let (name, credential) = holder.ok_or_else(|| missing_scope(scope))?;
            found.insert(name.clone(), credential.clone());
        }
        let now = Timestamp::now();
        let dead = found.iter().find(|(_, it)| it.is_expired(now) && it.refresh.is_none());
        dead.map_or(Ok(()), |(name, _)| Err(expired(name)))?;
        Ok(found)
    }

    /// The secrets a chain declares as they are now, for those who only want to recognise them.
    pub fn known(&self, plan: &Plan) -> Result<Secrets, Fault> {
        let declared = self.declared(plan)?;
        Ok(Secrets(declared.into_iter().map(|(name, credential)| (name, credential.secret)).collect()))
    }

    /// The secrets a chain declares, renewed where they are about to expire.
    pub async fn open(&self, plan: &Plan) -> Result<Secrets, Fault> {
        let mut secrets = BTreeMap::new();
        for (name, credential) in self.declared(plan)? {
            let is_old = credential.is_expired(Timestamp::now().checked_add(MARGIN).unwrap_or_default());
            // Rare, and large: it must not make every call's future so.
            let credential = if is_old { Box::pin(self.renew(&name, credential)).await? } else { credential };
            secrets.insert(name, credential.secret);
        }
        Ok(Secrets(secrets))
    }

    async fn renew(&self, name: &str, old: Credential) -> Result<Credential, Fault> {
        let Some(refresh) = &old.refresh else { return Ok(old) };
        let token = oauth::renew(&self.http, refresh).await.map_err(|fault| {
            Fault::new(
                ErrorKind::MissingRequirement,
                format!("`{name}` cannot be renewed: {}", fault.message),
            )
            .with_hint(format!("`kiwi auth login {name}` gets a new one"))
        })?;
        let renewed = token.into_credential(refresh.clone(), &old.scopes);
        self.store()?.set(name, renewed.clone()).map_err(|error| error.fault())?;
        Ok(renewed)
    }
}

/// Before a secret comes into this process.
pub(crate) fn guard_memory() -> Result<(), Fault> {
    keep_memory_private().map_err(|error| {
        Fault::new(ErrorKind::Internal, format!("the memory of this process cannot be guarded: {error}"))
    })
}

/// A secret that nobody stored.
pub(crate) fn missing(name: &str) -> Fault {
    Fault::new(ErrorKind::MissingRequirement, format!("no secret named `{name}` is stored"))
        .with_hint(format!("`kiwi auth set {name}` stores one, `kiwi auth login {name}` gets a token"))
        .with_details(json!({"secret": name}))
}

fn missing_scope(scope: &str) -> Fault {
    Fault::new(ErrorKind::MissingRequirement, format!("no stored token has the scope `{scope}`"))
        .with_hint(format!("`kiwi auth login NAME --scope {scope}` gets one"))
        .with_details(json!({"scope": scope}))
}

fn expired(name: &str) -> Fault {
    Fault::new(ErrorKind::MissingRequirement, format!("the token `{name}` has expired"))
        .with_hint(format!("`kiwi auth login {name}` gets a new one"))
        .with_details(json!({"secret": name}))
}
