//! `config/kiwi.toml`: the user's says what is allowed, the project's may only tighten it.

mod file;
mod profile;
mod read;
#[cfg(test)]
mod tests;

use kiwi_model::Space;
use kiwi_model::limit::{ApprovalConfig, BudgetConfig, LoopConfig, RateConfig};
use kiwi_model::lockfile::LockMode;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::SpaceError;
use file::SearchSection;
use profile::Profiles;
use read::read;

pub(crate) use read::{open_anywhere, open_inside};

pub use file::{ConfigFile, EmbedderChoice, KeyringUse, Mode, SandboxBackend, SignedSource, config_schema};
pub use profile::{OnAsk, Profile, ProfileLayer, ProfileMode, ProfileSection, Transport};

const DEFAULT_TIMEOUT: u64 = 300;
const DEFAULT_OUTPUT: u64 = 8 << 20;

/// The configuration in force.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// How chains are validated.
    pub mode: Mode,
    /// What a call may use.
    pub limits: Limits,
    /// What a call does about its lockfile, where somebody said so.
    pub lock_mode: Option<LockMode>,
    /// Whether the desktop's keyring is used.
    pub keyring: KeyringUse,
    /// Who builds the walls of sandboxes.
    pub sandbox: SandboxBackend,
    /// Rules.
    pub rules: RulesInForce,
    /// A second place for checkpoints of the audit log.
    pub anchor: Option<PathBuf>,
    /// How items are found.
    pub search: SearchSettings,
    /// The registry that is asked where nobody names another.
    pub registry: Option<String>,
    /// What must be signed by a key that is trusted.
    pub require_signature: BTreeSet<SignedSource>,
    /// How often callers may use tools.
    pub rates: RateConfig,
    /// When a session goes round in circles.
    pub loops: LoopConfig,
    /// What a session may use in all.
    pub budget: BudgetConfig,
    /// How long a call waits for a person.
    pub approvals: ApprovalConfig,
    profiles: Profiles,
    user_interpreter: Option<String>,
    project_interpreter: Option<String>,
}

/// What the configuration says about search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchSettings {
    /// What turns texts into vectors.
    pub embedder: EmbedderChoice,
    /// The folder of a model.
    pub model: Option<PathBuf>,
    /// The address of a service.
    pub url: Option<String>,
    /// The name of a model there.
    pub name: Option<String>,
    /// How many numbers its vectors have.
    pub dimensions: Option<usize>,
    /// The variable that holds its key.
    pub key_env: Option<String>,
    /// Whether what is used moves what is found.
    pub usage: bool,
}

/// What the configuration says about rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RulesInForce {
    /// Whether the rules that come with Kiwi hold.
    pub default: bool,
    /// Whether the user's folder of rules must have some.
    pub user_required: bool,
    /// Whether the project's must.
    pub project_required: bool,
}

/// What a call may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long it may take, where its tool says nothing.
    pub timeout: Duration,
    /// How many bytes it may print.
    pub output: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self::in_force(&ConfigFile::default(), &ConfigFile::default(), &mut Vec::new())
    }
}

impl Config {
    /// Reads the configuration files below two `.ai` folders. A file that is not there says nothing; one that cannot be
    /// read refuses.
    pub fn load(user: Option<&Path>, project: Option<&Path>) -> Result<(Self, Vec<String>), SpaceError> {
        let mut warnings = Vec::new();
        // The user may link it from where they keep such files. A project that does may be up to something.
        let user = read(user, open_anywhere, &mut warnings)?;
        let project = read(project, open_inside, &mut warnings)?;
        let config = Self::in_force(&user, &project, &mut warnings);
        Ok((config, warnings))
    }

    /// The interpreter for a tool of a space. A project cannot choose it for the user's tools, or for the system's.
    pub fn python_interpreter(&self, space: Space) -> Option<&str> {
        let project = self.project_interpreter.as_deref().filter(|_| space == Space::Project);
        project.or(self.user_interpreter.as_deref())
    }

    /// The profile that calls of a transport have, and where the caller asks for less, that one as well. A name that
    /// means nothing allows nothing.
    pub fn profile(
        &self,
        transport: Transport,
        is_unattended: bool,
        narrower: Option<&str>,
    ) -> Result<Profile, UnknownProfile> {
        let names = self.profiles.bound(transport, is_unattended).chain(narrower);
        let mut found: Option<Profile> = None;
        for name in names {
            let profile = self.profiles.named(name).ok_or_else(|| UnknownProfile {
                name: name.to_owned(),
                known: self.profiles.names().into_iter().map(str::to_owned).collect(),
            })?;
            found = Some(match found {
                Some(before) => before.and(profile),
                None => profile,
            });
        }
        let mut profile = found.ok_or_else(|| UnknownProfile { name: String::new(), known: Vec::new() })?;
        profile.is_agent |= transport.is_agent();
        Ok(profile)
    }

    fn in_force(user: &ConfigFile, project: &ConfigFile, warnings: &mut Vec<String>) -> Self {
        let allowed = user.validation.mode.unwrap_or_default();
        let mode = match project.validation.mode {
            Some(Mode::Lenient) if allowed == Mode::Strict => {
                warnings.push("the project asks for `validation.mode = \"lenient\"`; the user's configuration must allow it".to_owned());
                Mode::Strict
            }
            Some(mode) => mode,
            None => allowed,
        };
        if project.credentials.keyring.is_some() {
            warnings
                .push("the project sets `credentials.keyring`; only the user's configuration can".to_owned());
        }
        if project.sandbox.backend.is_some() {
            warnings.push("the project sets `sandbox.backend`; only the user's configuration can".to_owned());
        }
        if project.rules.default == Some(false) {
            warnings.push("the project drops `rules.default`; only the user's configuration can".to_owned());
        }
        let SearchSection {
            usage: _,
            ref embedder,
            ref model,
            ref url,
            ref name,
            ref dimensions,
            ref key_env,
        } = project.search;
        if embedder.is_some()
            || model.is_some()
            || url.is_some()
            || name.is_some()
            || dimensions.is_some()
            || key_env.is_some()
        {
            warnings.push("the project chooses an embedder; only the user's configuration can".to_owned());
        }
        if project.registry.url.is_some() {
            warnings.push("the project sets `registry.url`; only the user's configuration can".to_owned());
        }
        if project.audit.anchor.is_some() {
            warnings.push("the project sets `audit.anchor`; only the user's configuration can".to_owned());
        }
        let profiles = Profiles::in_force(user, project, warnings);
        let mut limit = |name: &str, user: Option<u64>, project: Option<u64>, default: u64| {
            let allowed = user.unwrap_or(default);
            if project.is_some_and(|project| project > allowed) {
                warnings.push(format!("the project asks for a higher `limits.{name}` than {allowed}; the user's configuration must allow it"));
            }
            project.map_or(allowed, |project| project.min(allowed))
        };
        let timeout = limit("timeout", user.limits.timeout, project.limits.timeout, DEFAULT_TIMEOUT);
        let output = limit("output", user.limits.output, project.limits.output, DEFAULT_OUTPUT);
        Self {
            mode,
            limits: Limits { timeout: Duration::from_secs(timeout), output },
            keyring: user.credentials.keyring.unwrap_or_default(),
            lock_mode: user.lockfiles.mode.max(project.lockfiles.mode),
            sandbox: user.sandbox.backend.unwrap_or_default(),
            rules: RulesInForce {
                default: user.rules.default.unwrap_or(true),
                user_required: user.rules.required.unwrap_or(false),
                project_required: project.rules.required.unwrap_or(false),
            },
            anchor: user.audit.anchor.clone(),
            search: SearchSettings {
                embedder: user.search.embedder.unwrap_or_default(),
                model: user.search.model.clone(),
                url: user.search.url.clone(),
                name: user.search.name.clone(),
                dimensions: user.search.dimensions.map(usize::from),
                key_env: user.search.key_env.clone(),
                usage: user.search.usage.unwrap_or(true) && project.search.usage.unwrap_or(true),
            },
            registry: user.registry.url.clone(),
            require_signature: [user, project]
                .iter()
                .flat_map(|file| file.trust.require_signature.iter().copied())
                .collect(),
            rates: user.rates.tightened_by(&project.rates),
            loops: user.loops.tightened_by(&project.loops),
            budget: user.budget.tightened_by(&project.budget),
            approvals: user.approvals.tightened_by(&project.approvals),
            profiles,
            user_interpreter: user.python.interpreter.clone(),
            project_interpreter: project.python.interpreter.clone(),
        }
    }
}

/// A profile that nobody defines.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no profile `{name}`")]
pub struct UnknownProfile {
    /// The name.
    pub name: String,
    /// The names that mean something.
    pub known: Vec<String>,
}
