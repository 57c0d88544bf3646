//! Whether the project is one that its user trusts.

use kiwi_model::Digest;
use kiwi_space::{Spaces, TrustState};

use crate::host::Host;

/// What speaks against trusting the project with this configuration; nothing where there is no project.
pub(crate) fn problem(
    spaces: &Spaces,
    host: &Host,
    config: impl FnOnce() -> Result<Option<Digest>, String>,
) -> Option<String> {
    if host.trusts_everything() {
        return None;
    }
    let project = spaces.project_root()?;
    let config = match config() {
        Ok(config) => config,
        Err(why) => return Some(format!("the project's configuration cannot be read: {why}")),
    };
    match spaces.trust().and_then(|trust| trust.state(project, config)) {
        Ok(TrustState::Trusted) => None,
        Ok(TrustState::Unknown) => Some(format!("the project `{}` is not trusted", project.display())),
        Ok(TrustState::Changed) => Some(format!(
            "the configuration of the project `{}` has changed since it was trusted",
            project.display()
        )),
        Err(error) => Some(format!("whether the project is trusted cannot be read: {error}")),
    }
}
