//! Where these commands find the servers and what is known about them.

use kiwi_mcp::{Book, McpError, Page, Registry, Server, ServerName};
use kiwi_model::{Explain as _, Fault, Space};
use kiwi_space::{Spaces, TrustState};
use std::sync::Arc;

use crate::context::Context;
use crate::printer;

/// The files that name servers.
pub fn registry(context: &Context) -> &Registry {
    context.kernel.upstreams().registry()
}

/// What is known about servers.
pub fn book(context: &Context) -> &Book {
    context.kernel.upstreams().book()
}

/// What a server offers, as far as it has said so.
pub fn offered(context: &Context, server: &Server) -> Result<Option<Arc<Page>>, Fault> {
    book(context).page(server).map_err(|error| fault(&error))
}

/// A server, and what it offers now.
pub type Asked = (ServerName, Result<Arc<Page>, McpError>);

/// What servers offer now: all are asked at once, and each for itself.
pub fn refresh(context: &Context, names: Vec<ServerName>) -> Result<Vec<Asked>, Fault> {
    let upstreams = context.kernel.upstreams();
    Context::wait(async {
        let asked: Vec<_> = names
            .into_iter()
            .map(|name| {
                let (upstreams, asked) = (Arc::clone(upstreams), name.clone());
                upstreams.pool().reset(&name);
                (name, tokio::spawn(async move { upstreams.refresh(&asked).await }))
            })
            .collect();
        let mut all = Vec::new();
        for (name, task) in asked {
            let lost = || McpError::Unavailable {
                server: name.to_string(),
                problem: "was lost sight of".to_owned(),
                stderr: String::new(),
            };
            let page = task.await.unwrap_or_else(|_| Err(lost()));
            all.push((name, page));
        }
        upstreams.close().await;
        all
    })
}

/// What went wrong with a server.
pub fn fault(error: &McpError) -> Fault {
    error.fault()
}

/// The space whose file is meant: the user's where that was said, or where there is no project.
pub fn space(context: &Context, is_user: bool) -> Space {
    if is_user || context.kernel.spaces().project_root().is_none() { Space::User } else { Space::Project }
}

/// Changes a file of `config/`. A project that was trusted stays so: the person who trusts it made the change.
pub fn change<T>(
    context: &Context,
    space: Space,
    change: impl FnOnce() -> Result<T, kiwi_mcp::McpError>,
) -> Result<T, Fault> {
    let was_trusted = space == Space::Project && is_trusted(context.kernel.spaces())?;
    let changed = change().map_err(|error| error.fault())?;
    if was_trusted && let Some(project) = context.kernel.spaces().project_root() {
        let trust = context.kernel.spaces().trust().map_err(|error| error.fault())?;
        trust.add(project, jiff::Timestamp::now()).map_err(|error| error.fault())?;
    } else if space == Space::Project {
        printer::note("agents use a project's servers once you trust it: `kiwi trust add`");
    }
    Ok(changed)
}

/// Whether the project is trusted as it is.
pub fn is_trusted(spaces: &Spaces) -> Result<bool, Fault> {
    let Some(project) = spaces.project_root() else { return Ok(false) };
    let config = spaces.project_config().map_err(|error| error.fault())?;
    let trust = spaces.trust().map_err(|error| error.fault())?;
    let state = trust.state(project, config).map_err(|error| error.fault())?;
    Ok(state == TrustState::Trusted)
}
