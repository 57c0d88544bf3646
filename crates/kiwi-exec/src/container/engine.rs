//! Finding a container engine.

use kiwi_launcher::plan::EngineKind;
use rustix::process::{Resource, getrlimit};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Containers;
use crate::error::ExecError;
use crate::which::ProgramSearch;

/// An engine that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Engine {
    /// Which one.
    pub kind: EngineKind,
    /// Its client.
    pub program: PathBuf,
}

/// Whether limits on memory, processors and processes are enforced: a rootless Podman needs cgroups of the second version for
/// that, and only warns where there are none.
pub fn holds_limits(kind: EngineKind) -> bool {
    kind == EngineKind::Docker
        || rustix::process::getuid().is_root()
        || Path::new("/sys/fs/cgroup/cgroup.controllers").exists()
}

impl Engine {
    /// Whether it enforces limits on memory, processors and processes.
    pub fn holds_limits(&self) -> bool {
        holds_limits(self.kind)
    }

    /// The limits, as its `--ulimit` takes them, of a container that leaves no image of its memory: the engine is the
    /// parent of what runs inside, so they are told and not inherited.
    ///
    /// Podman that is told one limit forgets what its configuration says of two others, and raises them as far as only
    /// the owner of a machine may. So it is told those too: what holds for Kiwi, and no more than Podman leaves itself.
    pub fn limits_without_cores(&self) -> Vec<String> {
        let mut limits = vec!["core=1:1".to_owned()];
        if self.kind == EngineKind::Podman {
            let highest =
                [("nofile", Resource::Nofile, PODMAN_FILES), ("nproc", Resource::Nproc, most_processes())];
            limits.extend(highest.map(|(name, resource, highest)| {
                let limit = getrlimit(resource).maximum.map_or(highest, |own| own.min(highest));
                format!("{name}={limit}:{limit}")
            }));
        }
        limits
    }
}

/// How many open files Podman allows itself.
const PODMAN_FILES: u64 = 1 << 20;

/// How many processes the system can have, which is what Podman allows itself.
fn most_processes() -> u64 {
    let told = std::fs::read_to_string("/proc/sys/kernel/pid_max").ok();
    told.and_then(|told| told.trim().parse().ok()).unwrap_or(1 << 15)
}

impl Containers {
    /// The engine of this name; for `auto` Docker where its service seems to be there, else Podman.
    pub fn engine(&self, wanted: &str) -> Result<Engine, ExecError> {
        if let Some(kind) = EngineKind::parse(wanted) {
            return self.find(kind).ok_or_else(|| self.missing(kind.as_str()));
        }
        let docker = self.find(EngineKind::Docker);
        let podman = self.find(EngineKind::Podman);
        let first = if self.has_docker_service() { docker.clone() } else { None };
        first.or(podman).or(docker).ok_or_else(|| self.missing("docker"))
    }

    /// Every engine there is.
    pub fn engines(&self) -> Vec<Engine> {
        EngineKind::ALL.into_iter().filter_map(|kind| self.find(kind)).collect()
    }

    fn find(&self, kind: EngineKind) -> Option<Engine> {
        let program = self.search(&BTreeMap::new()).find(kind.as_str())?;
        Some(Engine { kind, program })
    }

    fn missing(&self, program: &str) -> ExecError {
        self.search(&BTreeMap::new()).explain_missing(program)
    }

    fn search<'a>(&'a self, versions: &'a BTreeMap<String, String>) -> ProgramSearch<'a> {
        ProgramSearch { path: &self.search_path, cwd: Path::new("/"), versions }
    }

    /// Told by the file system: asking the client would cost every call a process.
    fn has_docker_service(&self) -> bool {
        let variable = |name: &str| {
            self.env.iter().find(|(own, value)| own == name && !value.is_empty()).map(|it| &it.1)
        };
        match (variable("DOCKER_HOST"), variable("DOCKER_CONTEXT")) {
            (Some(host), _) => host.strip_prefix("unix://").is_none_or(|path| Path::new(path).exists()),
            (None, Some(_)) => true,
            (None, None) => {
                let own = variable("XDG_RUNTIME_DIR").map(|folder| Path::new(folder).join("docker.sock"));
                own.is_some_and(|socket| socket.exists()) || Path::new("/var/run/docker.sock").exists()
            }
        }
    }
}
