//! Writing lockfiles, one or a hundred thousand, with the index written once.

use kiwi_model::Space;
use kiwi_model::lockfile::{LockName, LockRoot, Lockfile};
use std::path::PathBuf;

use super::merge::keep_unknown;
use super::place::{check_category, inside, key_of, path_of};
use super::read::{MAX_BYTES, read};
use super::reconcile::{Content, Known, Origin, Trust, reconcile};
use super::store::Store;
use super::{LockProblem, Locks};
use crate::error::{SpaceError, show};

/// Which of a tool's lockfiles is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// The one a call finds by itself.
    Default,
    /// One beside it, named after its chain.
    Alternative,
}

/// A lockfile that was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// The file.
    pub path: PathBuf,
    /// What happened to it.
    pub outcome: SaveOutcome,
}

/// What saving did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaveOutcome {
    /// There was none before.
    Created,
    /// It says something else now.
    Rewritten,
    /// It said the same already; no byte and no time of it changed.
    Unchanged,
}

impl Locks<'_> {
    /// Saves one lockfile. See [`LockWriter::save`]; for many, [`Locks::writer`] is far cheaper.
    pub fn save(&self, scope: Space, lock: &Lockfile, slot: Slot) -> Result<Saved, SpaceError> {
        let mut writer = self.writer(scope)?;
        let saved = writer.save(lock, slot)?;
        // The lockfile is safe. The index is a cache: whoever asks it next finds out what it lacks.
        let _ = writer.finish();
        Ok(saved)
    }

    /// Waits until nobody else writes in this scope, and then saves as many as need be.
    pub fn writer(&self, scope: Space) -> Result<LockWriter, SpaceError> {
        let store = Store::create(self.home(scope)?)?;
        Ok(LockWriter { store, known: Known::new(), is_dirty: false })
    }
}

/// The only writer of a scope while it lives. Each lockfile is safe when [`LockWriter::save`] returns; the index is
/// written when the writer is finished or dropped, and makes itself good if neither happens.
pub struct LockWriter {
    store: Store,
    known: Known,
    is_dirty: bool,
}

impl LockWriter {
    /// Saves a lockfile where its root says it belongs. Keys of the file there that this Kiwi does not know are kept; a
    /// file there that cannot be read is replaced, unless a newer Kiwi wrote it or it is somebody's unfinished merge.
    pub fn save(&mut self, lock: &Lockfile, slot: Slot) -> Result<Saved, SpaceError> {
        self.put(lock, slot, |problem| !problem.must_stay() && !problem.is_conflict())
    }

    /// The same, and an unfinished merge is replaced too: whoever asks for this wants it settled.
    pub fn replace(&mut self, lock: &Lockfile, slot: Slot) -> Result<Saved, SpaceError> {
        self.put(lock, slot, |problem| !problem.must_stay())
    }

    fn put(
        &mut self,
        lock: &Lockfile,
        slot: Slot,
        may_go: impl FnOnce(&LockProblem) -> bool,
    ) -> Result<Saved, SpaceError> {
        check_category(&lock.root.category)?;
        let LockRoot { tool_id, version, category, .. } = &lock.root;
        let (tool_id, version) = (tool_id.clone(), version.clone());
        let mut name = LockName { tool_id, version, alternative: None };
        let wrong = |store: &Store, name: &LockName, problem| SpaceError::Lockfile {
            path: store.root.absolute(&inside(&path_of(&key_of(category, name)))),
            tool: name.tool_id.clone(),
            problem,
        };
        // What could not be read back must not be written.
        let mut lock = Lockfile::parse(&lock.to_text())
            .map_err(|error| wrong(&self.store, &name, LockProblem::Content(error)))?;
        name.alternative = (slot == Slot::Alternative).then(|| lock.chain_hash.clone());
        let key = key_of(category, &name);
        let path = self.store.root.absolute(&inside(&path_of(&key)));
        let outcome = match read(&self.store.root, &key, &name) {
            Ok(None) => SaveOutcome::Created,
            Ok(Some(old)) => {
                let old = old.lock;
                keep_unknown(&mut lock, old.clone());
                if lock.agrees_with(&old) {
                    return Ok(Saved { path, outcome: SaveOutcome::Unchanged });
                }
                SaveOutcome::Rewritten
            }
            Err(problem) if may_go(&problem) => SaveOutcome::Rewritten,
            Err(problem) => return Err(wrong(&self.store, &name, problem)),
        };
        let text = lock.to_text();
        if text.len() as u64 > MAX_BYTES {
            return Err(SpaceError::TooLarge { path: show(&path), what: "bytes", limit: MAX_BYTES });
        }
        let modified = self.store.put(&path_of(&key), text.as_bytes())?;
        self.is_dirty = true;
        self.known.insert(key, Content::new(name, &lock, modified, Origin::Written));
        Ok(Saved { path, outcome })
    }

    /// Removes a lockfile of this scope by its key; one that is gone is removed already.
    pub fn remove(&mut self, key: &str) -> Result<(), SpaceError> {
        self.is_dirty = true;
        self.store.remove(key)
    }

    /// Writes the index.
    pub fn finish(mut self) -> Result<(), SpaceError> {
        self.settle()
    }

    fn settle(&mut self) -> Result<(), SpaceError> {
        if !std::mem::take(&mut self.is_dirty) {
            return Ok(());
        }
        let store = &self.store;
        let view = reconcile(&store.root, store.scope, Trust::Index, &self.known, &mut |_, _| {})?;
        store.write_index(&view)
    }
}

impl Drop for LockWriter {
    fn drop(&mut self) {
        let _ = self.settle();
    }
}

impl std::fmt::Debug for LockWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LockWriter").field("scope", &self.store.scope).finish_non_exhaustive()
    }
}
