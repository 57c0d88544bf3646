//! What a call asks for: one file, by its path, without looking at any other.

use jiff::Timestamp;
use kiwi_model::lockfile::{LockName, Lockfile, SUFFIX, is_short_hash};
use kiwi_model::{Digest, Space, ToolId, Version};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::SystemTime;

use super::place::{check_category, inside, key_of, path_of};
use super::read::read;
use super::{LockEntry, Locks, time, walk};
use crate::error::{PathProblem, SpaceError};
use crate::root::Root;
use crate::spaces::Home;

/// A lockfile that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// What it says.
    pub lock: Lockfile,
    /// Whose it is.
    pub scope: Space,
    /// The file.
    pub path: PathBuf,
    /// Its name.
    pub name: LockName,
    /// Its category.
    pub category: String,
    /// Digest of the file's bytes.
    pub digest: Digest,
    pub(super) modified: Timestamp,
}

impl Stored {
    /// Its key in the index.
    pub fn key(&self) -> String {
        key_of(&self.category, &self.name)
    }
}

impl Locks<'_> {
    /// The lockfile of a tool's default chain. The project's wins over the user's.
    pub fn load(&self, category: &str, id: &ToolId, version: &Version) -> Result<Option<Stored>, SpaceError> {
        let name = LockName { tool_id: id.clone(), version: version.clone(), alternative: None };
        self.load_named(category, &name)
    }

    /// The lockfile of another chain of a tool, by the hash of that chain.
    pub fn load_alternative(
        &self,
        category: &str,
        id: &ToolId,
        version: &Version,
        chain_hash: &str,
    ) -> Result<Option<Stored>, SpaceError> {
        if !is_short_hash(chain_hash) {
            return Err(SpaceError::bad_path(chain_hash, PathProblem::NotAChainHash));
        }
        let alternative = Some(chain_hash.to_owned());
        self.load_named(category, &LockName { tool_id: id.clone(), version: version.clone(), alternative })
    }

    /// The lockfile of a listing.
    pub fn open(&self, entry: &LockEntry) -> Result<Stored, SpaceError> {
        check_category(&entry.category)?;
        let found = load_from(self.home(entry.scope)?, &entry.category, &entry.name)?;
        found.ok_or_else(|| SpaceError::Gone { tool: entry.key.clone(), handle: entry.path.clone() })
    }

    /// The other chains that were agreed for the same version of the same tool. Broken ones are passed over: they are
    /// no reason to run anything.
    pub fn alternatives(&self, stored: &Stored) -> Vec<Stored> {
        let mut names = BTreeSet::new();
        for root in self.homes().filter_map(|home| Root::open(&home.ai).ok().flatten()) {
            names.extend(walk::names(&root, &stored.category));
        }
        let default = LockName { alternative: None, ..stored.name.clone() }.file_name();
        let hash = |name: &String| {
            let (tool, hash) = name.strip_suffix(SUFFIX)?.rsplit_once('.')?;
            (Some(tool) == default.strip_suffix(SUFFIX)).then(|| hash.to_owned())
        };
        let hashes = names.iter().filter_map(hash);
        let load = |hash: String| {
            let (id, version) = (&stored.name.tool_id, &stored.name.version);
            self.load_alternative(&stored.category, id, version, &hash).ok().flatten()
        };
        hashes.filter_map(load).collect()
    }

    /// The versions of a tool that have a lockfile in a category, lowest first, as far as that many names in each scope
    /// tell. No file is opened.
    pub fn versions(&self, category: &str, id: &ToolId, most: usize) -> Vec<Version> {
        let roots = self.homes().filter_map(|home| Root::open(&home.ai).ok().flatten());
        let names = roots.flat_map(|root| walk::names(&root, category).take(most));
        // Only the content tells whether this is a prerelease, or an alternative of one.
        let is_certain =
            |version: &Version| !version.to_string().rsplit('.').next().is_some_and(is_short_hash);
        let mut versions: Vec<Version> = names
            .filter_map(|name| LockName::parse(&name))
            .filter(|name| name.tool_id == *id)
            .map(|name| name.version)
            .filter(is_certain)
            .collect();
        versions.sort();
        versions.dedup();
        versions
    }

    fn load_named(&self, category: &str, name: &LockName) -> Result<Option<Stored>, SpaceError> {
        check_category(category)?;
        for home in self.homes() {
            if let Some(stored) = load_from(home, category, name)? {
                return Ok(Some(stored));
            }
        }
        Ok(None)
    }

    /// Whether there is any lockfile at all. A folder that cannot be looked into counts as holding one.
    pub fn any(&self) -> bool {
        self.homes().any(|home| match Root::open(&home.ai) {
            Ok(Some(root)) => walk::has_any(&root),
            Ok(None) => false,
            Err(_) => true,
        })
    }

    /// Notes that a lockfile was used, so that it is not pruned. Costs something once a day, and is never an error.
    pub fn touch(&self, stored: &Stored, now: SystemTime) {
        let now = time::of_system(now);
        if !time::is_day_old(stored.modified, now) {
            return;
        }
        let Some(Ok(Some(root))) = self.spaces.ai(stored.scope).map(Root::open) else { return };
        if let Ok(opened) = root.open_file(&inside(&path_of(&stored.key()))) {
            time::touch(&opened.file, now);
        }
    }
}

fn load_from(home: &Home, category: &str, name: &LockName) -> Result<Option<Stored>, SpaceError> {
    let Some(root) = Root::open(&home.ai)? else { return Ok(None) };
    let key = key_of(category, name);
    let path = root.absolute(&inside(&path_of(&key)));
    match read(&root, &key, name) {
        Ok(found) => Ok(found.map(|found| Stored {
            lock: found.lock,
            scope: home.space,
            path,
            name: name.clone(),
            category: category.to_owned(),
            digest: found.digest,
            modified: found.modified,
        })),
        Err(problem) => Err(SpaceError::Lockfile { path, tool: name.tool_id.clone(), problem }),
    }
}
