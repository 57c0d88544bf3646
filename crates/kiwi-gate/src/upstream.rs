//! Upstream servers, as this place has them.

use kiwi_exec::{Confinement, HttpClient};
use kiwi_mcp::{McpError, Surroundings, Upstreams};
use kiwi_model::{Explain as _, Fault, Space};
use kiwi_space::Spaces;
use std::sync::Arc;

use crate::admission::untrusted;
use crate::host::Host;
use crate::prepare::Preparer;
use crate::trust;
use crate::vault::Vault;

/// Where tokens of servers are kept, below the user's `.ai`.
const TOKENS: &str = "mcp/tokens";

/// The servers that the spaces name.
pub(crate) fn servers(
    spaces: &Arc<Spaces>,
    host: &Arc<Host>,
    preparer: &Preparer,
    http: &Arc<HttpClient>,
    vault: &Arc<Vault>,
) -> Arc<Upstreams> {
    let (environment, secrets) = (Arc::clone(host), Arc::clone(vault));
    // What the machine's environment says comes before what is stored, as it does for every program.
    let lookup = move |name: &str| {
        let set = environment.environment.get(name).cloned();
        set.or_else(|| Some(secrets.store().ok()?.get(name).ok()??.secret.expose().to_owned()))
    };
    let project = spaces.project_root().unwrap_or(&host.cwd).to_path_buf();
    let tokens = spaces.ai(Space::User).map_or_else(|| host.scratch.join(TOKENS), |ai| ai.join(TOKENS));
    let surroundings = Surroundings {
        launcher: preparer.environments.launcher.clone(),
        http: Arc::clone(http),
        environment: host.base_environment(false).into_iter().collect(),
        lookup: Arc::new(lookup),
        search_path: host.search_path().to_owned(),
        confinement: Confinement {
            read: vec![project.clone()],
            backend: preparer.walls(),
            ..Confinement::default()
        },
        project,
        tokens,
        authorize: host.authorize.clone(),
        on_change: Arc::new(|_, _| {}),
    };
    let (spaces_again, host) = (Arc::clone(spaces), Arc::clone(host));
    // Looked at anew each time: the registry is read again when it changes, and so must be whether it is trusted.
    let may_contact = move || {
        let config = || spaces_again.project_config().map_err(|error| error.to_string());
        trust::problem(&spaces_again, &host, config).map_or(Ok(()), Err)
    };
    Upstreams::new(spaces, surroundings, Arc::new(may_contact))
}

/// What went wrong with a server, as a call shows it.
pub(crate) fn fault(error: &McpError) -> Fault {
    match error {
        McpError::Untrusted { .. } => untrusted(error.to_string()).fault(),
        _ => error.fault(),
    }
}
