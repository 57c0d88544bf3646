//! Files and index brought together. The files are right; the index only saves reading them.
//!
//! Whether a file changed since the index was written is told by its time. Two changes within one tick of the file
//! system's clock bear the same time, so a file modified within a tick of the index is doubtful (git calls it racy) and is
//! read again, until the index has been written anew a tick later.

use jiff::Timestamp;
use kiwi_model::lockfile::{LockName, Lockfile};
use kiwi_model::{Explain as _, Fault, Space};
use std::collections::{BTreeMap, HashMap};

use super::index::{self, Health, Index, Noted};
use super::place::{inside, path_of};
use super::read::{Settled, read_settled};
use super::walk::{Found, Walked, walk};
use super::{LockProblem, time};
use crate::error::SpaceError;
use crate::list::beside_each_other;
use crate::root::Root;
use crate::stamp;

/// How many files are read before progress is told.
const CHUNK: usize = 1024;

/// Told how many of how many files were read.
pub(super) type Progress<'a> = &'a mut dyn FnMut(usize, usize);

/// What is known of one lockfile.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) name: LockName,
    pub(super) chain_hash: String,
    pub(super) created_at: Timestamp,
    pub(super) last_validated: Timestamp,
    pub(super) problem: Option<Fault>,
}

/// What the content of a file said, and when that file was modified.
#[derive(Debug, Clone)]
pub(super) struct Content {
    name: LockName,
    chain_hash: String,
    created_at: Timestamp,
    modified: Timestamp,
    origin: Origin,
}

/// How the content of a file came to be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// It was there.
    Read,
    /// This process put it there, so no index can have known it.
    Written,
}

/// Files whose content is known already, by key.
pub(super) type Known = HashMap<String, Content>;

/// The store as it is.
#[derive(Default)]
pub(super) struct View {
    pub(super) rows: BTreeMap<String, Row>,
    /// Before anything was looked at.
    pub(super) updated_at: Timestamp,
    /// Whether the index says something else.
    pub(super) changed: bool,
    pub(super) leftovers: Vec<String>,
    /// What had to be read for it, as far as a change since would show.
    pub(super) read: Known,
}

/// How far the index is believed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// Files that were not touched since it was written are not read.
    Index,
    /// Every file is read.
    Nothing,
}

impl Content {
    pub(super) fn new(name: LockName, lock: &Lockfile, modified: Timestamp, origin: Origin) -> Self {
        let created_at = time::parse(&lock.generated_at).unwrap_or(modified);
        Self { name, chain_hash: lock.chain_hash.clone(), created_at, modified, origin }
    }

    /// When it was last known to be good, as far as the file alone tells.
    fn last_validated(&self, now: Timestamp) -> Timestamp {
        self.modified.max(self.created_at).min(now)
    }
}

/// Looks at every name, and reads what the index does not know or may know wrongly.
pub(super) fn reconcile(
    root: &Root,
    scope: Space,
    trust: Trust,
    known: &Known,
    progress: Progress<'_>,
) -> Result<View, SpaceError> {
    let now = time::of_system(stamp::now());
    // Each takes about as long as the other.
    let (mut index, walked) = std::thread::scope(|threads| {
        let reading =
            std::thread::Builder::new().spawn_scoped(threads, || index::read(root, scope, now)).ok();
        let walked = walk(root);
        let index = reading.and_then(|reading| reading.join().ok());
        (index.unwrap_or_else(|| index::read(root, scope, now)), walked)
    });
    let Walked { found, leftovers } = walked?;
    if trust == Trust::Nothing {
        index.updated_at = None;
    }
    let mut view = View {
        rows: BTreeMap::new(),
        updated_at: now,
        changed: index.health == Health::Broken,
        leftovers,
        read: Known::new(),
    };
    let mut unknown = Vec::new();
    let mut untouched = Vec::with_capacity(found.len());
    for found in found {
        // What this process wrote or read itself comes first: two writes can bear the same time.
        let content = known.get(&found.key).filter(|content| Some(content.modified) == found.modified);
        if let Some(content) = content {
            view.add(found.key, content.clone(), &mut index);
        } else if index.has_seen(&found)
            && let Some(noted) = index.noted.remove(&found.key)
        {
            untouched.push((found.key, Row::untouched(found.name, noted)));
        } else {
            unknown.push(found);
        }
    }
    // At once: one by one takes several times as long.
    view.rows.append(&mut untouched.into_iter().collect());
    let (total, mut done) = (unknown.len(), 0);
    for chunk in unknown.chunks(CHUNK) {
        let all = beside_each_other(chunk, |found| (found, read_settled(root, &found.key, &found.name)));
        for (found, read) in all {
            view.add_read(root, found, read, &mut index);
            done += 1;
            progress(done, total);
        }
    }
    // Lines without a file, and lines about files that broke.
    view.changed |= !index.noted.is_empty();
    Ok(view)
}

impl View {
    /// Adds what reading a file gave.
    fn add_read(&mut self, root: &Root, found: &Found, read: Settled, index: &mut Index) {
        match read {
            Ok(Some((read, name))) => {
                let content = Content::new(name, &read.lock, read.modified, Origin::Read);
                if time::is_settled(content.modified, self.updated_at) {
                    self.read.insert(found.key.clone(), content.clone());
                }
                self.add(found.key.clone(), content, index);
            }
            // Gone since it was seen.
            Ok(None) => {}
            Err(problem) => self.add_broken(root, found, problem),
        }
    }

    /// Adds a good lockfile.
    fn add(&mut self, key: String, content: Content, index: &mut Index) {
        let noted = index.noted.remove(&key);
        let is_as_noted = noted.as_ref().is_some_and(|noted| index.knew(noted, &content));
        let of_file = content.last_validated(self.updated_at);
        let last_validated = match &noted {
            // Then a person may have set the time in it.
            Some(noted) if is_as_noted => noted.last_validated,
            Some(noted) => noted.last_validated.max(of_file),
            None => of_file,
        };
        let can_end_doubt =
            index.is_doubtful(content.modified) && time::is_settled(content.modified, self.updated_at);
        self.changed |= !is_as_noted || can_end_doubt;
        let Content { name, chain_hash, created_at, .. } = content;
        self.rows.insert(key, Row { name, chain_hash, created_at, last_validated, problem: None });
    }

    fn add_broken(&mut self, root: &Root, found: &Found, problem: LockProblem) {
        let at = found.modified.unwrap_or(self.updated_at).min(self.updated_at);
        let path = root.absolute(&inside(&path_of(&found.key)));
        let fault = SpaceError::Lockfile { path, tool: found.name.tool_id.clone(), problem }.fault();
        let row = Row {
            name: found.name.clone(),
            chain_hash: String::new(),
            created_at: at,
            last_validated: at,
            problem: Some(fault),
        };
        self.rows.insert(found.key.clone(), row);
    }
}

impl Index {
    /// Whether what the index says about a file is what it would say if the file were read.
    fn has_seen(&self, found: &Found) -> bool {
        let in_name = found.name.alternative.as_ref();
        let agrees = |noted: &Noted| in_name.is_none_or(|hash| *hash == noted.chain_hash);
        found.modified.is_some_and(|modified| !self.is_doubtful(modified))
            && self.noted.get(&found.key).is_some_and(agrees)
    }

    /// Whether a file modified then may have been modified once more since the index looked at it.
    fn is_doubtful(&self, modified: Timestamp) -> bool {
        self.updated_at.is_none_or(|at| !time::is_settled(modified, at))
    }

    /// Whether a file that was read is the one this line is about: not modified since, and it says the same.
    fn knew(&self, noted: &Noted, content: &Content) -> bool {
        content.origin == Origin::Read
            && self.updated_at.is_some_and(|at| content.modified <= at)
            && (&noted.chain_hash, noted.created_at) == (&content.chain_hash, content.created_at)
    }
}

impl Row {
    /// What the index says.
    fn untouched(name: LockName, noted: Noted) -> Self {
        let Noted { chain_hash, created_at, last_validated } = noted;
        Self { name: name.settle(&chain_hash), chain_hash, created_at, last_validated, problem: None }
    }
}
