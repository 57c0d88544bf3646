//! Whether walls can be built here, found out by trying: once per Kiwi process, and where there is a folder to remember it in,
//! once for as long as the system runs and the programs stay what they are.
//!
//! Only success is remembered. It decides no more than who is asked: walls that cannot be built after all are a refusal, and
//! the next call tries again.

use kiwi_model::{Isolation, Piece, Text};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::confinement::{Backend, Confinement};
use crate::environment::{make_private, name as named, of_program};
use crate::error::ExecError;
use crate::launcher::Door;
use crate::process::{Launcher, Process, Unwatched};
use kiwi_launcher::PROBE;

/// What trials of this process came to: nothing, or why they failed.
static TRIALS: Mutex<BTreeMap<Asked, Option<String>>> = Mutex::new(BTreeMap::new());

/// How launchers are started, and `bwrap`, unless they are to build the walls themselves.
type Asked = (Door, Option<PathBuf>);

/// The trial of one backend.
#[derive(Debug, Clone)]
pub struct Trial {
    asked: Asked,
    scratch: PathBuf,
    /// The folder in which successes are remembered.
    memory: Option<PathBuf>,
}

impl Trial {
    /// The one of `bwrap` at this path, or of the launcher itself.
    pub fn of(launcher: &Launcher, bubblewrap: Option<&Path>) -> Self {
        let asked = (launcher.door.clone(), bubblewrap.map(Path::to_owned));
        Self { asked, scratch: launcher.scratch.clone(), memory: launcher.memory.clone() }
    }

    /// Why this backend does not work here, if it does not.
    pub async fn failure(&self) -> Option<String> {
        let known = trials().get(&self.asked).cloned();
        if let Some(known) = known {
            return known;
        }
        let file = self.file();
        let is_remembered = file.as_ref().is_some_and(|file| file.exists());
        let failure = if is_remembered { None } else { self.attempt().await };
        trials().insert(self.asked.clone(), failure.clone());
        if let (None, false, Some(file)) = (&failure, is_remembered, file) {
            self.remember(&file);
        }
        failure
    }

    /// Forgets that it works: walls could not be built after all.
    pub fn forget(&self) {
        trials().remove(&self.asked);
        if let Some(file) = self.file() {
            let _ = fs::remove_file(file);
        }
    }

    /// What it is remembered by.
    fn file(&self) -> Option<PathBuf> {
        Some(self.memory.as_ref()?.join(name(&self.asked)?))
    }

    /// Forgets all that is known.
    pub fn forget_all(launcher: &Launcher) {
        trials().clear();
        if let Some(folder) = &launcher.memory {
            clear(folder);
        }
    }

    /// What cannot be remembered is tried again.
    fn remember(&self, file: &Path) {
        let Some(folder) = &self.memory else { return };
        // What lies there is of a system that no longer runs, of other programs, or of who was asked before.
        clear(folder);
        let _ = make_private(folder).map(|()| fs::write(file, ""));
    }

    /// Runs the launcher itself inside, where it ends at once. Boxed, because running a process begins with a choice.
    fn attempt(&self) -> Pin<Box<dyn Future<Output = Option<String>> + Send>> {
        let (door, bubblewrap) = &self.asked;
        let launcher = Launcher::new(&door.kiwi, &self.scratch).by(door.instead.clone());
        let backend = if bubblewrap.is_some() { Backend::Bubblewrap } else { Backend::Native };
        let mut process = probe(Isolation::Restricted, Confinement { backend, ..Confinement::default() });
        let folder = bubblewrap.as_deref().and_then(Path::parent);
        process.search_path = folder.map(Path::to_string_lossy).map(Into::into).unwrap_or_default();
        Box::pin(async move {
            match launcher.run(process, &Unwatched, std::future::pending()).await {
                Ok(finished) if finished.exit.is_success() => None,
                Ok(finished) => Some(format!("a trial ended with {}", finished.exit)),
                Err(ExecError::SandboxUnavailable { why, .. }) => Some(why),
                Err(error) => Some(error.to_string()),
            }
        })
    }
}

fn trials() -> MutexGuard<'static, BTreeMap<Asked, Option<String>>> {
    TRIALS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn clear(memory: &Path) {
    for entry in fs::read_dir(memory).into_iter().flatten().flatten() {
        let _ = fs::remove_file(entry.path());
    }
}

/// What its success is remembered by: whatever could change it without a word. `None`: nothing can be.
fn name((door, bubblewrap): &Asked) -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let programs = [Some(&door.kiwi), door.instead.as_ref(), bubblewrap.as_ref()];
    let programs: Vec<Value> =
        programs.into_iter().flatten().map(|it| of_program(it)).collect::<Option<_>>()?;
    let user = rustix::process::geteuid().as_raw();
    Some(named(&json!({"boot": boot, "programs": programs, "user": user})))
}

/// The launcher itself as a process that ends at once.
pub fn probe(isolation: Isolation, confinement: Confinement) -> Process {
    Process {
        program: Text(vec![Piece::Kiwi]),
        args: vec![Text::literal(Launcher::ARGUMENT), Text::literal(PROBE)],
        env: Vec::new(),
        cwd: "/".into(),
        stdin: Vec::new(),
        timeout: Duration::from_secs(10),
        output_cap: 1 << 16,
        isolation,
        confinement,
        has_secrets: false,
        packages: Vec::new(),
        search_path: String::new(),
        project: "/".into(),
    }
}
