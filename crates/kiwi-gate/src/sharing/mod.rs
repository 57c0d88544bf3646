//! Sharing tools through a registry: what every face does about it.
//!
//! What comes is verified before it lands (`install`), what goes is what would run here (`publish`). Everything that is
//! installed is written down in a lockfile, so that what others publish later changes nothing by itself (`update`).

mod install;
mod locks;
mod publish;
mod remove;
mod update;

pub use install::{Installation, InstalledLink, LinkState};
pub use locks::{Resolve, Synced, SyncedLock};
pub use publish::{Publish, PublishState, Published};
pub use remove::Uninstalled;
pub use update::{Change, Outdated, Update};

use kiwi_model::{Digest, ErrorKind, Explain, Fault, Secret, Space};
use kiwi_registry::{Cache, Fetching, Registry};
use kiwi_space::{Config, SignedSource, Spaces};
use std::sync::Arc;

use crate::host::Host;
use crate::kernel::Kernel;
use crate::planner::Planner;
use crate::prepare::Preparer;
use crate::vault::Vault;

/// Told how many bytes of how many are over.
pub type Transfer<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// One registry, for the user of a kernel.
pub struct Sharing<'k> {
    parts: Parts<'k>,
    registry: Registry,
    cache: Cache,
}

/// What of a kernel is needed for it.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'k> {
    pub planner: &'k Planner,
    pub preparer: &'k Preparer,
    pub vault: &'k Vault,
    pub host: &'k Host,
    pub config: &'k Config,
}

impl Kernel {
    /// The registry that is named, by whoever asks or by their surroundings. Nobody is asked yet.
    pub fn sharing(&self, named: Option<&str>) -> Result<Sharing<'_>, Fault> {
        let parts = Parts {
            planner: &self.planner,
            preparer: &self.preparer,
            vault: &self.vault,
            host: &self.host,
            config: &self.config,
        };
        Sharing::new(parts, named)
    }

    /// Whether a registry is named somewhere.
    pub fn has_registry(&self) -> bool {
        let is_set = self.host.environment.get("KIWI_REGISTRY").is_some_and(|value| !value.is_empty());
        is_set || self.config.registry.is_some()
    }
}

impl<'k> Sharing<'k> {
    pub(crate) fn new(parts: Parts<'k>, named: Option<&str>) -> Result<Self, Fault> {
        let set = |name: &str| parts.host.environment.get(name).filter(|value| !value.is_empty());
        let url = named
            .or_else(|| set("KIWI_REGISTRY").map(String::as_str))
            .or(parts.config.registry.as_deref())
            .ok_or_else(|| {
                Fault::new(ErrorKind::MissingRequirement, "no registry is named")
                    .with_hint("name it by `--registry URL`, by `KIWI_REGISTRY`, or by `registry.url` in the user's config/kiwi.toml; `kiwi registry serve` starts one")
            })?;
        let no_user_space = || {
            Fault::new(ErrorKind::MissingRequirement, "there is no user space")
                .with_hint("set HOME, or KIWI_USER_SPACE")
        };
        let user = parts.planner.spaces().ai(Space::User).ok_or_else(no_user_space)?;
        let cache = fetched(parts.planner.spaces()).ok_or_else(no_user_space)?;
        let token = match set("KIWI_TOKEN") {
            Some(token) => Some(Secret::new(token.clone())),
            // Without a store there is no token; looking must not make one.
            None if !user.join("credentials").exists() => None,
            None => {
                let stored =
                    parts.vault.store()?.get(&credential_name(url)).map_err(|error| error.fault())?;
                stored.map(|credential| credential.secret)
            }
        };
        let registry = Registry::new(Arc::clone(&parts.vault.http), url, token).map_err(Fault::from)?;
        Ok(Self { parts, registry, cache })
    }

    fn spaces(&self) -> &'k Spaces {
        self.parts.planner.spaces()
    }
}

impl Sharing<'_> {
    /// The registry itself.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Keeps a token for this registry, once the registry knows it.
    pub async fn login(&self, token: Secret) -> Result<kiwi_registry::protocol::Whoami, Fault> {
        let asked =
            Registry::new(Arc::clone(&self.parts.vault.http), self.registry.url(), Some(token.clone()))
                .map_err(Fault::from)?;
        let known = asked.whoami().await.map_err(Fault::from)?;
        self.parts.vault.auth()?.set(&credential_name(self.registry.url()), token)?;
        Ok(known)
    }

    /// Forgets the token of this registry; says whether there was one.
    pub fn logout(&self) -> Result<bool, Fault> {
        self.parts.vault.auth()?.remove(&credential_name(self.registry.url()))
    }

    fn fetching<'a>(&'a self, progress: Transfer<'a>) -> Fetching<'a> {
        Fetching { registry: &self.registry, cache: &self.cache, progress }
    }

    fn requires_signature(&self) -> bool {
        self.parts.config.require_signature.contains(&SignedSource::Registry)
    }
}

/// What was fetched from registries, for all projects of a user.
pub(crate) fn fetched(spaces: &Spaces) -> Option<Cache> {
    spaces.ai(Space::User).map(|user| Cache::new(user.join("cache/registry")))
}

/// The name under which the token of a registry is kept: readable, and no other registry's.
fn credential_name(url: &str) -> String {
    let url = url.trim().trim_end_matches('/');
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    let shown: String = host.chars().take(80).map(plain).collect();
    let digest: String = Digest::of(url.as_bytes()).hex().chars().take(8).collect();
    format!("registry-{shown}-{digest}")
}
