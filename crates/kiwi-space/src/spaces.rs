//! Where the spaces are.

use kiwi_chain::Tool;
use kiwi_model::{Digest, Space};
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::Config;
use crate::credentials::Credentials;
use crate::error::SpaceError;
use crate::index::Index;
use crate::keys::{KeyPurpose, Keys};
use crate::kind::Item;
use crate::loader::{Caches, Loader};
use crate::locks::Locks;
use crate::lull::Lull;
use crate::packages::Packages;
use crate::root::Root;
use crate::signers::Signers;
use crate::system::System;
use crate::trust::{Trust, config_digest};

/// The folder that makes a folder a space.
pub(crate) const AI: &str = ".ai";

/// Where to look for spaces. The caller reads flags and environment; this crate does not.
#[derive(Debug, Clone)]
pub struct Locations {
    /// The folder given with `--project`.
    pub project: Option<PathBuf>,
    /// Where the caller stands; must be absolute.
    pub cwd: PathBuf,
    /// The folder that holds the user's `.ai`: `KIWI_USER_SPACE`, else `HOME`.
    pub user: Option<PathBuf>,
}

/// The three spaces. Cheap to open: folders are looked at when something is asked for.
pub struct Spaces {
    project: Option<Home>,
    user: Option<Home>,
    pub(crate) system: System,
    caches: Caches,
    pub(crate) lull: Lull,
}

/// A space on disk.
pub(crate) struct Home {
    pub(crate) space: Space,
    /// The folder that holds `.ai`.
    pub(crate) folder: PathBuf,
    pub(crate) ai: PathBuf,
    /// The name under which its packages are noted in the user space.
    pub(crate) owner: String,
    /// Shared with those who watch the space.
    pub(crate) index: Arc<Index>,
}

impl Spaces {
    /// Finds the project and the user space.
    pub fn open(locations: Locations) -> Result<Self, SpaceError> {
        let Locations { project, cwd, user } = locations;
        let user = user.map(|user| absolute(&cwd, &user));
        let project = match project {
            Some(given) => Some(named_project(absolute(&cwd, &given), user.as_deref())?),
            None => nearest_project(&absolute(&cwd, Path::new("")), user.as_deref()),
        };
        let project = project.map(|folder| {
            let owner = Digest::of(folder.as_os_str().as_bytes()).hex();
            Home { space: Space::Project, ai: folder.join(AI), folder, owner, index: Arc::default() }
        });
        let user = user.map(|folder| Home {
            space: Space::User,
            ai: folder.join(AI),
            folder,
            owner: "user".into(),
            index: Arc::default(),
        });
        Ok(Self { project, user, system: System::embedded(), caches: Caches::new(), lull: Lull::default() })
    }

    /// The folder that holds the project's `.ai`.
    pub fn project_root(&self) -> Option<&Path> {
        self.project.as_ref().map(|home| home.folder.as_path())
    }

    /// The folder that holds the user's `.ai`, whether or not it is there yet.
    pub fn user_root(&self) -> Option<&Path> {
        self.user.as_ref().map(|home| home.folder.as_path())
    }

    /// The `.ai` folder of a space; the system has none.
    pub fn ai(&self, space: Space) -> Option<&Path> {
        self.home(space).map(|home| home.ai.as_path())
    }

    /// Where state goes: the project's `.ai`, without a project the user's. It may have to be made.
    pub fn state_root(&self) -> Result<&Path, SpaceError> {
        let home = self.project.as_ref().or(self.user.as_ref());
        home.map(|home| home.ai.as_path()).ok_or(SpaceError::NoSpace { space: Space::User })
    }

    /// Where caches go.
    pub fn cache_dir(&self) -> Result<PathBuf, SpaceError> {
        self.state_root().map(|root| root.join("cache"))
    }

    /// Where the audit log goes.
    pub fn audit_dir(&self) -> Result<PathBuf, SpaceError> {
        self.state_root().map(|root| root.join("logs/audit"))
    }

    /// The configuration in force: the user's, tightened by the project's. Warnings come beside it.
    pub fn config(&self) -> Result<(Config, Vec<String>), SpaceError> {
        Config::load(self.ai(Space::User), self.ai(Space::Project))
    }

    /// The user's credentials. A project has none: what it brings along must not choose what tools are trusted with.
    pub fn credentials(&self) -> Result<Credentials, SpaceError> {
        let user = self.ai(Space::User).ok_or(SpaceError::NoSpace { space: Space::User })?;
        Ok(Credentials::new(user.join("credentials")))
    }

    /// The user's own keys.
    pub fn keys(&self) -> Result<Keys, SpaceError> {
        let user = self.ai(Space::User).ok_or(SpaceError::NoSpace { space: Space::User })?;
        Ok(Keys::new(user.join("keys")))
    }

    /// The projects that their user trusts.
    pub fn trust(&self) -> Result<Trust, SpaceError> {
        let user = self.ai(Space::User).ok_or(SpaceError::NoSpace { space: Space::User })?;
        Ok(Trust::new(user.join("trust")))
    }

    /// The keys whose signatures their user trusts.
    pub fn signers(&self) -> Result<Signers, SpaceError> {
        let user = self.ai(Space::User).ok_or(SpaceError::NoSpace { space: Space::User })?;
        Ok(Signers::new(user.join("signers")))
    }

    /// Whether a key's signatures count here: the user has said so, or it is their own.
    pub fn trusts(&self, key: &str) -> Result<bool, SpaceError> {
        let is_own = || {
            let own = self.keys().and_then(|keys| keys.get(KeyPurpose::User));
            own.is_ok_and(|own| own.is_some_and(|own| own.public().to_string() == key))
        };
        Ok(self.signers()?.has(key)? || is_own())
    }

    /// A digest over the project's configuration; `None` without a project.
    pub fn project_config(&self) -> Result<Option<Digest>, SpaceError> {
        self.project.as_ref().map(|home| config_digest(&home.ai)).transpose()
    }

    /// The installed packages of a space, for those who write them.
    pub fn packages(&self, space: Space) -> Result<Packages<'_>, SpaceError> {
        let home = self.home(space).ok_or(SpaceError::NoSpace { space })?;
        Ok(Packages { spaces: self, home })
    }

    /// The lockfiles of the project and the user space.
    pub fn locks(&self) -> Locks<'_> {
        Locks { spaces: self }
    }

    /// The bytes of an embedded file (`rules/default.kappa`), checked against the digest taken when Kiwi was built.
    pub fn system_file(&self, path: &str) -> Result<Option<&'static [u8]>, SpaceError> {
        self.system.file(path)
    }

    /// The embedded files below a folder (`rules`), by path.
    pub fn system_files(&self, folder: &str) -> Vec<&'static str> {
        self.system.paths(folder).collect()
    }

    /// How often a tool was wanted.
    pub fn wanted(&self) -> u64 {
        let (hits, misses) = self.caches.tools.counts();
        hits + misses
    }

    /// Forgets the tools that were read; one that is wanted again is read again.
    pub fn forget(&self) {
        self.caches.tools.clear();
    }

    /// How often each cache helped.
    pub fn counters(&self) -> BTreeMap<&'static str, u64> {
        self.caches.counters.all()
    }

    pub(crate) fn home(&self, space: Space) -> Option<&Home> {
        match space {
            Space::Project => self.project.as_ref(),
            Space::User => self.user.as_ref(),
            Space::System => None,
        }
    }

    /// The spaces on disk, the nearest first.
    pub(crate) fn homes(&self) -> impl Iterator<Item = &Home> {
        Space::LOOKUP.into_iter().filter_map(|space| self.home(space))
    }

    pub(crate) fn user_ai(&self) -> Option<&Path> {
        self.ai(Space::User)
    }

    pub(crate) fn caches(&self) -> &Caches {
        &self.caches
    }

    pub(crate) fn load_item(&self, home: &Home, item: &Item) -> Result<Arc<Tool>, SpaceError> {
        let root = Root::open(&home.ai)?.ok_or(SpaceError::NoSpace { space: home.space })?;
        self.with_loader(home, &root, |loader| loader.load(item))
    }

    /// Lends a loader for a space whose folder is open.
    pub(crate) fn with_loader<T>(
        &self,
        home: &Home,
        root: &Root,
        work: impl FnOnce(&Loader<'_>) -> Result<T, SpaceError>,
    ) -> Result<T, SpaceError> {
        let user = match &self.user {
            Some(user) if home.space != Space::User => Root::open(&user.ai)?,
            _ => None,
        };
        let user = if home.space == Space::User { Some(root) } else { user.as_ref() };
        work(&Loader { space: home.space, root, user, owner: &home.owner, caches: &self.caches })
    }
}

impl std::fmt::Debug for Spaces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spaces")
            .field("project", &self.project_root())
            .field("user", &self.user_root())
            .finish_non_exhaustive()
    }
}

fn named_project(folder: PathBuf, user: Option<&Path>) -> Result<PathBuf, SpaceError> {
    if !folder.join(AI).is_dir() {
        return Err(SpaceError::NoProject { folder });
    }
    if is_user(&folder, user) {
        return Err(SpaceError::ProjectIsUser { folder });
    }
    Ok(folder)
}

fn nearest_project(cwd: &Path, user: Option<&Path>) -> Option<PathBuf> {
    let is_project = |folder: &&Path| folder.join(AI).is_dir() && !is_user(folder, user);
    cwd.ancestors().find(is_project).map(Path::to_owned)
}

/// A path without symlinks where it exists, so that one folder has one name.
fn absolute(cwd: &Path, path: &Path) -> PathBuf {
    let joined = cwd.join(path);
    joined.canonicalize().unwrap_or(joined)
}

fn is_user(folder: &Path, user: Option<&Path>) -> bool {
    let same = |a: &Path, b: &Path| match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    };
    user.is_some_and(|user| same(&folder.join(AI), &user.join(AI)))
}
