//! What the tests of sandboxes share: every backend at every level, and an interpreter to write attempts in.

use kiwi_exec::{Backend, ContainerWalls, EngineKind, Process};
use kiwi_model::{Isolation, Text};
use std::borrow::Borrow;
use std::path::{Path, PathBuf};

use super::{process, shell};

pub const LEVELS: [Isolation; 2] = [Isolation::Sandboxed, Isolation::Restricted];
/// Those that are no container engines.
pub const BACKENDS: [Backend; 2] = [Backend::Native, Backend::Bubblewrap];

/// A backend at a level.
pub type Wall = (Isolation, Backend);

/// Every backend at every level with walls, but for container engines.
pub fn walls() -> Vec<Wall> {
    assert!(
        Path::new("/usr/bin/bwrap").is_file() || Path::new("/bin/bwrap").is_file(),
        "`bwrap` is needed: install the package `bubblewrap`, or run `cargo xtask test`"
    );
    at_all_levels(&BACKENDS)
}

/// Every container engine at every level with walls.
#[expect(clippy::disallowed_methods, reason = "who runs the tests says where the engines are")]
pub fn containers() -> Vec<Wall> {
    let Some(engines) = std::env::var_os("KIWI_TEST_CONTAINERS").map(PathBuf::from) else {
        panic!(
            "this test needs container engines, which `cargo xtask test` sets up; alone it runs by \
             `cargo xtask engines cargo test -p kiwi-exec`"
        )
    };
    let file = |name: &str| engines.join(name).display().to_string();
    let search_path = std::env::var("PATH").unwrap_or_default();
    let env = vec![
        ("PATH".into(), search_path.clone()),
        ("DOCKER_HOST".into(), format!("unix://{}", file("docker.sock"))),
        ("CONTAINERS_CONF".into(), file("containers.conf")),
        ("CONTAINERS_STORAGE_CONF".into(), file("storage.conf")),
    ];
    let uses = engines.join("uses");
    at_all_levels(&EngineKind::ALL.map(|kind| {
        let (search_path, env, uses) = (search_path.clone(), env.clone(), uses.clone());
        Backend::Container(ContainerWalls { kind, search_path, env, uses })
    }))
}

/// Everything that the engines know about containers of Kiwi's.
#[expect(clippy::disallowed_methods, reason = "somebody has to look from outside")]
pub fn all_containers() -> String {
    let mut told = String::new();
    for (_, backend) in containers() {
        let Backend::Container(walls) = backend else { continue };
        let ask = |words: &[&str]| {
            let mut command = std::process::Command::new(walls.kind.as_str());
            let output = command.args(words).envs(walls.env.clone()).output().expect("an engine");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let listed = ask(&["ps", "--all", "--quiet", "--filter", "label=kiwi.owner"]);
        told.extend(listed.lines().map(|number| ask(&["inspect", number])));
    }
    told
}

/// Every backend there is at every level with walls.
pub fn all_walls() -> Vec<Wall> {
    [walls(), containers()].concat()
}

fn at_all_levels(backends: &[Backend]) -> Vec<Wall> {
    let walls = |level| backends.iter().map(move |backend| (level, backend.clone()));
    LEVELS.into_iter().flat_map(walls).collect()
}

/// The same process behind walls.
pub fn walled(mut asked: Process, wall: impl Borrow<Wall>) -> Process {
    let (level, backend) = wall.borrow();
    asked.isolation = *level;
    asked.confinement.backend = backend.clone();
    asked
}

/// The system's Python, which lies in the fixed list.
pub fn python(script: &str) -> Process {
    let mut asked = process("/usr/bin/python3", &["-I", "-c", script]);
    asked.env.push(("LANG".into(), Text::literal("C.UTF-8")));
    asked
}

/// A shell script in a folder of its own.
pub fn shell_in(folder: &Path, script: &str) -> Process {
    Process { cwd: folder.to_owned(), project: folder.to_owned(), ..shell(script) }
}

/// A folder as the kernel names it.
pub fn real(folder: &Path) -> PathBuf {
    std::fs::canonicalize(folder).expect("it exists")
}

/// Whether the tests run as the system's root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
