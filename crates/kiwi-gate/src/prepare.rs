//! Interpreters, and the language packages of tools: freely, or as agreed.

use kiwi_chain::{Difference, Field, Merged, Plan, Tool, compare_environments};
use kiwi_exec::{
    Backend, Containers, EngineKind, Environment, Environments, ExecError, Launcher, PinDifference,
    ProgramSearch, Progress, Wanted, Wish,
};
use kiwi_model::lockfile::{LockEnvironment, LockMode};
use kiwi_model::{ErrorKind, Explain, Fault, Language, Pin, Space, Version};
use kiwi_space::{Config, SandboxBackend, Spaces, Stored};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;

use crate::agreement::{Agreement, Planned, mismatch};
use crate::host::Host;

/// Finds interpreters and prepares what tools require.
pub(crate) struct Preparer {
    host: Arc<Host>,
    config: Arc<Config>,
    pub environments: Environments,
    pub containers: Containers,
    project: PathBuf,
}

/// An interpreter that was found, and for whom.
pub(crate) struct Interpreter<'a> {
    leaf: &'a Tool,
    language: Language,
    /// The program.
    pub path: PathBuf,
}

impl Preparer {
    pub fn new(host: Arc<Host>, spaces: &Spaces, config: Arc<Config>, launcher: Launcher) -> Self {
        let cache = Self::cache(spaces).unwrap_or_else(|| host.scratch.clone());
        let containers = Containers {
            launcher: launcher.clone(),
            search_path: host.search_path().to_owned(),
            env: host.engine_environment(),
            uses: cache.join("images"),
        };
        let environments = Environments { cache, launcher, search_path: host.search_path().to_owned() };
        let project = spaces.project_root().unwrap_or(&host.cwd).to_path_buf();
        Self { host, config, environments, containers, project }
    }

    /// Where things are kept that are shared by everything the user runs; without a user space they stay with the project.
    pub fn cache(spaces: &Spaces) -> Option<PathBuf> {
        spaces.ai(Space::User).or(spaces.ai(Space::Project)).map(|ai| ai.join("cache"))
    }

    /// Who builds the walls of sandboxes, as the configuration has it.
    pub fn walls(&self) -> Backend {
        match self.config.sandbox {
            SandboxBackend::Auto => Backend::Auto,
            SandboxBackend::Bwrap => Backend::Bubblewrap,
            SandboxBackend::Landlock => Backend::Native,
            SandboxBackend::Docker => Backend::Container(self.containers.walls(EngineKind::Docker)),
            SandboxBackend::Podman => Backend::Container(self.containers.walls(EngineKind::Podman)),
        }
    }

    /// The interpreter that a program's name means for a tool, if it can read what it is to start. A project's
    /// configuration may name another.
    pub async fn interpreter<'a>(
        &self,
        leaf: &'a Tool,
        language: Language,
        program: &str,
    ) -> Result<Interpreter<'a>, Fault> {
        let configured = match language {
            Language::Python => self.config.python_interpreter(leaf.space),
            Language::Node => None,
        };
        let name = configured.unwrap_or(program);
        let search = ProgramSearch {
            path: self.host.search_path(),
            cwd: &self.project,
            versions: &self.host.environment,
        };
        let path = search.find(name).ok_or_else(|| search.explain_missing(name).fault())?;
        let interpreter = Interpreter { leaf, language, path };
        self.require_typescript(&interpreter).await?;
        Ok(interpreter)
    }

    /// TypeScript runs where Node itself takes the types away.
    async fn require_typescript(&self, interpreter: &Interpreter<'_>) -> Result<(), Fault> {
        let entrypoint = interpreter.leaf.manifest.entrypoint.as_deref().unwrap_or_default();
        if interpreter.language != Language::Node || !is_typescript(entrypoint) {
            return Ok(());
        }
        let version = self.version(interpreter).await?;
        if takes_types_away(&version) {
            return Ok(());
        }
        let program = interpreter.path.display().to_string();
        let message =
            format!("`{entrypoint}` is TypeScript, which `{program}` cannot run: it is Node {version}");
        Err(Fault::new(ErrorKind::MissingRequirement, message)
            .with_hint("install Node 22.18 or newer, for example `nvm install 24`")
            .with_details(json!({"program": program, "version": version})))
    }

    /// What the tool requires, as it can be had today; none where it requires nothing.
    pub async fn free(
        &self,
        interpreter: &Interpreter<'_>,
        progress: Progress<'_>,
    ) -> Result<Option<Environment>, Fault> {
        let requires = &interpreter.leaf.manifest.requires;
        if requires.is_empty() {
            return Ok(None);
        }
        let wish = self.wish(interpreter, Wanted::Named(requires.clone()));
        self.install(&wish, progress).await.map(Some).map_err(|error| error.fault())
    }

    /// What was agreed; none where nothing was to be installed. What cannot be had exactly so is an objection.
    pub async fn agreed(
        &self,
        interpreter: &Interpreter<'_>,
        agreement: &Agreement,
        progress: Progress<'_>,
    ) -> Result<Option<Environment>, Fault> {
        let version = self.version(interpreter).await?;
        let Some((stored, agreed)) = agreement.environment(interpreter.language, &version) else {
            return self.free(interpreter, progress).await;
        };
        let differences = compare_interpreters(agreed, interpreter.language, version);
        if !differences.is_empty() {
            let is_told = differences.iter().all(|difference| agreement.differences.contains(difference));
            let objection = mismatch(stored, &differences);
            return if is_told { self.free(interpreter, progress).await } else { Err(objection) };
        }
        match self.install_agreed(interpreter, agreed, progress).await? {
            Ok(environment) => Ok(environment),
            Err(differences) => Err(mismatch(stored, &differences)),
        }
    }

    /// Installs what was agreed, or says how what can be had differs from it.
    async fn install_agreed(
        &self,
        interpreter: &Interpreter<'_>,
        agreed: &LockEnvironment,
        progress: Progress<'_>,
    ) -> Result<Result<Option<Environment>, Vec<Difference>>, Fault> {
        if agreed.requires.is_empty() {
            return Ok(Ok(None));
        }
        match self.install(&self.wish_for(interpreter, &agreed.requires), progress).await {
            Ok(environment) => Ok(Ok(Some(environment))),
            Err(ExecError::PinsDiffer { differences }) => Ok(Err(packages(differences))),
            Err(error) => Err(error.fault()),
        }
    }

    /// What a lockfile says about the packages of a plan; none where its runtime installs none.
    pub async fn freeze(
        &self,
        plan: &Plan,
        progress: Progress<'_>,
    ) -> Result<Option<LockEnvironment>, Fault> {
        let Some(interpreter) = self.interpreter_of(plan).await? else { return Ok(None) };
        let version = self.version(&interpreter).await?;
        let installed = self.free(&interpreter, progress).await?.map(|environment| environment.installed);
        Ok(Some(LockEnvironment::of(interpreter.language, version, installed.unwrap_or_default())))
    }

    /// How what a runtime has here differs from what was agreed: the interpreter or, where that is the same, what of the
    /// packages can be had.
    pub async fn judge(
        &self,
        plan: &Plan,
        agreed: &LockEnvironment,
        progress: Progress<'_>,
    ) -> Result<Vec<Difference>, Fault> {
        let Some(interpreter) = self.interpreter_of(plan).await? else {
            return Ok(compare_environments(Some(agreed), None));
        };
        let version = self.version(&interpreter).await?;
        let differences = compare_interpreters(agreed, interpreter.language, version);
        if !differences.is_empty() {
            return Ok(differences);
        }
        Ok(self.install_agreed(&interpreter, agreed, progress).await?.err().unwrap_or_default())
    }

    /// A plan that is held against all of its lockfile that can be judged before anything is installed. What a call whose
    /// chain needs no interpreter, and whose lockfile names none, is held against is known already.
    pub async fn completed(&self, planned: Arc<Planned>) -> Arc<Planned> {
        let Some(lock) = &planned.lock else { return planned };
        let compared = match planned.plan.merged().ok().and_then(Merged::language) {
            None => Ok(without_interpreter(lock)),
            Some(_) => self.with_interpreter(&planned.plan, lock).await,
        };
        match compared {
            Ok(Some((stored, differences))) => Arc::new(planned.differing(&stored, differences)),
            Err(fault) if planned.mode == LockMode::Strict => Arc::new(planned.refused(fault)),
            // What cannot be found here, a call says itself when it comes to start it.
            Ok(None) | Err(_) => planned,
        }
    }

    /// How the interpreter differs from the agreed one, and which lockfile says so.
    async fn with_interpreter(&self, plan: &Plan, lock: &Agreement) -> Result<Option<Differing>, Fault> {
        if lock.stored.lock.environment.is_none() && lock.twin.is_none() {
            return Ok(None);
        }
        let Some(interpreter) = self.interpreter_of(plan).await? else {
            return Ok(without_interpreter(lock));
        };
        let version = self.version(&interpreter).await?;
        let Some((stored, agreed)) = lock.environment(interpreter.language, &version) else {
            return Ok(None);
        };
        let differences = compare_interpreters(agreed, interpreter.language, version);
        Ok((!differences.is_empty()).then(|| (stored.clone(), differences)))
    }

    /// The same, and how packages that are prepared here differ from those that were agreed. Nothing is installed.
    pub async fn looked_over(&self, planned: Arc<Planned>) -> Arc<Planned> {
        let planned = self.completed(planned).await;
        let Some(lock) = &planned.lock else { return planned };
        let Ok(Some(interpreter)) = self.interpreter_of(&planned.plan).await else { return planned };
        let Ok(version) = self.version(&interpreter).await else { return planned };
        let Some((stored, agreed)) = lock.environment(interpreter.language, &version) else { return planned };
        if agreed.interpreter(interpreter.language) != Some(&version) {
            return planned;
        }
        let differences = self.compare_prepared(&interpreter, agreed);
        if differences.is_empty() {
            return planned;
        }
        Arc::new(planned.differing(stored, differences))
    }

    /// How the packages that a tool asks for, as they are prepared, differ from the agreed ones of the same version. Another
    /// version says nothing: the agreed one may still be had.
    fn compare_prepared(&self, interpreter: &Interpreter<'_>, agreed: &LockEnvironment) -> Vec<Difference> {
        let wish = self.wish_for(interpreter, &agreed.requires);
        if agreed.requires.is_empty() || self.environments.ready(&wish).ok().flatten().is_some() {
            return Vec::new();
        }
        let named = self.wish(interpreter, Wanted::Named(interpreter.leaf.manifest.requires.clone()));
        let Some(prepared) = self.environments.ready(&named).ok().flatten() else { return Vec::new() };
        let is_same =
            |pin: &&Pin| agreed.requires.iter().any(|it| it.name == pin.name && it.version == pin.version);
        let here: Vec<Pin> = prepared.installed.iter().filter(is_same).cloned().collect();
        let named = |pin: &&Pin| here.iter().any(|it| it.name == pin.name);
        let there: Vec<Pin> = agreed.requires.iter().filter(named).cloned().collect();
        let of = |requires| LockEnvironment { requires, ..LockEnvironment::default() };
        compare_environments(Some(&of(there)), Some(&of(here)))
    }

    async fn interpreter_of<'p>(&self, plan: &'p Plan) -> Result<Option<Interpreter<'p>>, Fault> {
        let merged = plan.merged().map_err(|error| error.fault())?;
        match (plan.tools().first(), merged.language(), merged.program()) {
            (Some(leaf), Some(language), Some(program)) => {
                self.interpreter(leaf, language, program).await.map(Some)
            }
            _ => Ok(None),
        }
    }

    async fn version(&self, interpreter: &Interpreter<'_>) -> Result<String, Fault> {
        let version = self.environments.version_of(interpreter.language, &interpreter.path).await;
        version.map_err(|error| error.fault())
    }

    fn wish(&self, interpreter: &Interpreter<'_>, packages: Wanted) -> Wish {
        Wish {
            language: interpreter.language,
            interpreter: interpreter.path.clone(),
            packages,
            allow_source_builds: interpreter.leaf.manifest.allow_source_builds,
            builder_env: self.host.builder_environment(),
        }
    }

    /// Exactly these packages. Where what the tool itself asks for came to the same, as when it was frozen, that is there
    /// already.
    fn wish_for(&self, interpreter: &Interpreter<'_>, pins: &[Pin]) -> Wish {
        let there = |wish: &Wish| self.environments.ready(wish).ok().flatten();
        let pinned = self.wish(interpreter, Wanted::Pinned(pins.to_vec()));
        if there(&pinned).is_some() {
            return pinned;
        }
        let named = self.wish(interpreter, Wanted::Named(interpreter.leaf.manifest.requires.clone()));
        if there(&named).is_some_and(|environment| environment.installed == pins) { named } else { pinned }
    }

    async fn install(&self, wish: &Wish, progress: Progress<'_>) -> Result<Environment, ExecError> {
        let environment = self.environments.prepare(wish, progress).await?;
        self.environments.used(wish, jiff::Timestamp::now().into())?;
        Ok(environment)
    }
}

/// A lockfile, and how what is here differs from its environment.
type Differing = (Stored, Vec<Difference>);

/// How the interpreter of a language differs from the agreed one.
fn compare_interpreters(agreed: &LockEnvironment, language: Language, version: String) -> Vec<Difference> {
    let here = LockEnvironment::of(language, version, agreed.requires.clone());
    compare_environments(Some(agreed), Some(&here))
}

/// What was agreed for a chain that has no interpreter to prepare anything for.
fn without_interpreter(lock: &Agreement) -> Option<Differing> {
    let agreed = lock.stored.lock.environment.as_ref()?;
    let differences = compare_environments(Some(agreed), None);
    (!differences.is_empty()).then(|| (lock.stored.clone(), differences))
}

fn is_typescript(path: &str) -> bool {
    [".ts", ".mts", ".cts"].iter().any(|ending| path.ends_with(ending))
}

/// Whether a Node of this version runs TypeScript without being asked to try.
fn takes_types_away(version: &str) -> bool {
    Version::parse(version).is_ok_and(|version| match version.major {
        ..=21 => false,
        22 => version.minor >= 18,
        23 => version.minor >= 6,
        _ => true,
    })
}

/// Pins that do not hold, as differences.
fn packages(pins: Vec<PinDifference>) -> Vec<Difference> {
    pins.into_iter()
        .map(|PinDifference { name, pinned, installed }| Difference {
            position: None,
            tool: None,
            field: Field::Package,
            name: Some(name),
            old: pinned,
            new: installed,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_runs_typescript_since_a_version_of_each_line() {
        for old in ["18.20.8", "20.20.2", "21.9.0", "22.17.1", "23.5.0", "it"] {
            assert!(!takes_types_away(old), "{old}");
        }
        for new in ["22.18.0", "23.6.0", "24.0.0", "26.10.0", "27.0.0-nightly20261101abcdef"] {
            assert!(takes_types_away(new), "{new}");
        }
    }
}
