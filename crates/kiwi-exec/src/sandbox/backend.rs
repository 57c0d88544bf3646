//! Which backend builds the walls. What works here is found out by trying.

use kiwi_model::Isolation;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use super::trial::{Trial, probe};
use crate::confinement::{Backend, Confinement};
use crate::container::{ContainerError, ContainerWalls, EngineKind};
use crate::error::ExecError;
use crate::process::{Launcher, Process, Unwatched};
use crate::snapshot::{folder_of, random_name};
use crate::which::ProgramSearch;
use kiwi_launcher::plan::{Builder, EngineClient};
use kiwi_launcher::wire::Limits;
use kiwi_launcher::wire::Raw;

/// Who builds the walls for a process; nobody for the levels that have none.
pub async fn choose(launcher: &Launcher, process: &Process) -> Result<Option<Builder>, ExecError> {
    let level = process.isolation;
    if level < Isolation::Sandboxed {
        return Ok(None);
    }
    let unavailable = |why: String| ExecError::SandboxUnavailable { level, why };
    let bubblewrap = || bubblewrap(&process.search_path);
    match &process.confinement.backend {
        Backend::Container(walls) => contain(launcher, process, walls).await.map(Some),
        Backend::Native => Ok(Some(Builder::Native)),
        Backend::Bubblewrap => match bubblewrap() {
            Some(path) => Ok(Some(Builder::Bubblewrap(Raw::of(path)))),
            None => Err(unavailable("`bwrap` was not found".into())),
        },
        Backend::Auto => {
            let mut why = String::from("`bwrap` was not found");
            if let Some(path) = bubblewrap() {
                match Trial::of(launcher, Some(&path)).failure().await {
                    None => return Ok(Some(Builder::Bubblewrap(Raw::of(path)))),
                    Some(failure) => why = failure,
                }
            }
            match Trial::of(launcher, None).failure().await {
                None => Ok(Some(Builder::Native)),
                Some(failure) => Err(unavailable(format!("{why}; without it: {failure}"))),
            }
        }
    }
}

/// `bwrap`, where it is found.
pub fn bubblewrap(search_path: &str) -> Option<PathBuf> {
    let search = ProgramSearch { path: search_path, cwd: Path::new("/"), versions: &BTreeMap::new() };
    search.find("bwrap").filter(|path| path.is_absolute())
}

/// A container engine. Boxed, because its client is a process, which begins with a choice.
fn contain<'a>(
    launcher: &'a Launcher,
    process: &'a Process,
    walls: &'a ContainerWalls,
) -> Pin<Box<dyn Future<Output = Result<Builder, ExecError>> + Send + 'a>> {
    Box::pin(async move {
        let (engine, image) = walls.ready(launcher).await.map_err(|error| ContainerError::NoWalls {
            engine: walls.kind.as_str(),
            level: process.isolation,
            why: error.to_string(),
        })?;
        let Limits { memory, pids, .. } = process.confinement.limits;
        let asked = [("`memory`", memory), ("`pids`", pids)].into_iter().filter(|(_, limit)| limit.is_some());
        let limits: Vec<&str> = asked.map(|(name, _)| name).collect();
        if !limits.is_empty() && !engine.holds_limits() {
            let (engine, limits) = (engine.kind.as_str(), limits.join(", "));
            return Err(ContainerError::LimitsNotHeld { engine, limits }.into());
        }
        let name = random_name()?;
        Ok(Builder::Container(Box::new(EngineClient {
            kind: engine.kind,
            program: Raw::of(engine.program),
            env: walls.env.clone(),
            image: image.to_owned(),
            folder: Raw::of(folder_of(&launcher.scratch, &name)),
            name,
        })))
    })
}

impl Launcher {
    /// Who builds the walls of a sandbox here, found out by trying.
    pub async fn sandbox(&self, search_path: &str, backend: &Backend) -> Result<&'static str, ExecError> {
        let confinement = Confinement { backend: backend.clone(), ..Confinement::default() };
        let mut process = probe(Isolation::Restricted, confinement);
        search_path.clone_into(&mut process.search_path);
        // What is remembered was found out some other time.
        Trial::forget_all(self);
        let builder = choose(self, &process).await?;
        if *backend != Backend::Auto {
            // A choice among several is a trial already.
            self.run(process, &Unwatched, std::future::pending()).await?;
        }
        Ok(match builder {
            Some(Builder::Container(engine)) => match engine.kind {
                EngineKind::Docker => "docker, landlock and seccomp",
                EngineKind::Podman => "podman, landlock and seccomp",
            },
            Some(Builder::Bubblewrap(_)) => "bubblewrap, landlock and seccomp",
            Some(Builder::Native) | None => "namespaces, landlock and seccomp",
        })
    }

    /// Whether limits of a whole call can be held here, found out by trying.
    pub async fn holds(&self, limits: Limits) -> Result<(), ExecError> {
        let process = probe(Isolation::Standard, Confinement { limits, ..Confinement::default() });
        self.run(process, &Unwatched, std::future::pending()).await.map(|_| ())
    }
}
