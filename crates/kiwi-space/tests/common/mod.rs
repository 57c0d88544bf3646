//! A project and a user space in a temporary folder of their own.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use kiwi_chain::{Candidate, Catalog as _, Tool};
use kiwi_model::{Fault, Space, ToolId, Version};
use kiwi_space::{Listed, Locations, Spaces};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub struct Ground {
    folder: tempfile::TempDir,
}

impl Ground {
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("kiwi-space-").tempdir().expect("temporary folder");
        let ground = Self { folder };
        fs::create_dir_all(ground.project().join(".ai/tools")).expect("project");
        fs::create_dir_all(ground.user().join(".ai/tools")).expect("user");
        ground
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().expect("path")
    }

    pub fn project(&self) -> PathBuf {
        self.path().join("project")
    }

    pub fn user(&self) -> PathBuf {
        self.path().join("home")
    }

    pub fn ai(&self, relative: &str) -> PathBuf {
        self.project().join(".ai").join(relative)
    }

    pub fn user_ai(&self, relative: &str) -> PathBuf {
        self.user().join(".ai").join(relative)
    }

    /// Writes a file of the project space.
    pub fn write(&self, relative: &str, text: impl AsRef<[u8]>) -> PathBuf {
        write(&self.ai(relative), text)
    }

    pub fn write_user(&self, relative: &str, text: impl AsRef<[u8]>) -> PathBuf {
        write(&self.user_ai(relative), text)
    }

    pub fn spaces(&self) -> Spaces {
        let locations = Locations { project: None, cwd: self.project(), user: Some(self.user()) };
        Spaces::open(locations).expect("spaces")
    }

    /// The tools called `id` in the project, with fresh caches.
    pub fn find(&self, id: &str) -> Result<Vec<Arc<Tool>>, Fault> {
        find(&self.spaces(), id, Space::Project)
    }

    /// The only tool called `id` in the project.
    #[track_caller]
    pub fn one(&self, id: &str) -> Arc<Tool> {
        match self.find(id) {
            Ok(found) if found.len() == 1 => Arc::clone(&found[0]),
            Ok(found) => panic!("{} tools called {id}", found.len()),
            Err(fault) => panic!("{id}: {fault}"),
        }
    }

    #[track_caller]
    pub fn fault(&self, id: &str) -> Fault {
        match self.find(id) {
            Ok(found) => panic!("{id} is fine: {} found", found.len()),
            Err(fault) => fault,
        }
    }

    pub fn listed(&self) -> Vec<Listed> {
        self.spaces().list(Space::Project)
    }
}

pub fn id(text: &str) -> ToolId {
    ToolId::parse(text).expect("id")
}

pub fn version(text: &str) -> Version {
    Version::parse(text).expect("version")
}

pub fn candidates(spaces: &Spaces, name: &str, space: Space) -> Result<Vec<Candidate>, Fault> {
    spaces.candidates(&id(name), space)
}

pub fn find(spaces: &Spaces, name: &str, space: Space) -> Result<Vec<Arc<Tool>>, Fault> {
    candidates(spaces, name, space)?.iter().map(|candidate| spaces.load(candidate)).collect()
}

pub fn write(path: &Path, text: impl AsRef<[u8]>) -> PathBuf {
    fs::create_dir_all(path.parent().expect("folder")).expect("folder");
    fs::write(path, text).expect("file");
    path.to_owned()
}

pub fn set_executable(path: &Path, executable: bool) {
    fs::set_permissions(path, fs::Permissions::from_mode(if executable { 0o755 } else { 0o644 }))
        .expect("mode");
}

/// A manifest with nothing but what it must have.
pub fn manifest(id: &str, version: &str) -> String {
    format!(
        "tool_id: {id}\nversion: \"{version}\"\ntool_type: script\nexecutor: bash_runtime\nentrypoint: main.sh\n"
    )
}

pub fn paths(tool: &Tool) -> Vec<&str> {
    tool.files.iter().map(|file| file.entry.path.as_str()).collect()
}

/// Does something as somebody who may not read everything, as root may.
pub fn as_somebody<T: Send>(ground: &Ground, work: impl FnOnce() -> T + Send) -> T {
    if !rustix::process::geteuid().is_root() {
        return work();
    }
    let nobody = rustix::process::Uid::from_raw(65534);
    give(&ground.path(), nobody.as_raw());
    let run = move || {
        // Of this thread alone, and of those that it starts.
        rustix::thread::set_thread_res_uid(None, Some(nobody), None).expect("another user");
        work()
    };
    std::thread::scope(|scope| scope.spawn(run).join().expect("done"))
}

fn give(path: &Path, user: u32) {
    std::os::unix::fs::chown(path, Some(user), None).expect("given");
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        let is_folder = entry.file_type().expect("type").is_dir();
        if is_folder {
            give(&entry.path(), user);
        }
    }
}
