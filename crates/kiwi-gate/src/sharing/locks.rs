//! Lockfiles of a team: pushed and pulled whole, by key.
//!
//! What was the same here and there when they were last compared is remembered, so that a change on one side only is no
//! conflict. Where both sides changed, somebody says which counts.

use kiwi_model::lockfile::Lockfile;
use kiwi_model::{Digest, ErrorKind, Explain, Fault, Space};
use kiwi_registry::protocol::{LockfileChange, SharedLockfile};
use kiwi_space::{Slot, Stored, replace_file};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

use super::Sharing;

/// Which side counts where both changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolve {
    /// Neither: it is told.
    Tell,
    /// What lies here.
    Ours,
    /// What the registry has.
    Theirs,
    /// Whichever was frozen later.
    Merge,
}

/// What became of one lockfile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Synced {
    /// It was the same.
    Unchanged,
    /// It went to the registry.
    Pushed,
    /// It came from the registry.
    Pulled,
    /// The registry has a newer one: pulling brings it.
    Behind,
    /// What lies here is newer: pushing brings it there.
    Ahead,
    /// Both changed.
    Conflict,
}

/// A lockfile and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SyncedLock {
    /// Its key: `category/tool@version`.
    pub key: String,
    /// What became of it.
    pub state: Synced,
    /// Who shared the registry's last, where that matters.
    pub user: Option<String>,
}

/// What was the same here and there, by address, set and key.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Agreed(BTreeMap<String, BTreeMap<String, Point>>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Point {
    revision: u64,
    /// Of the lockfile without its time.
    digest: Digest,
}

/// Where both sides of a key are.
struct Sides<'a> {
    here: Option<&'a Stored>,
    there: Option<&'a SharedLockfile>,
    point: Option<Point>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Push,
    Pull,
}

impl Sharing<'_> {
    /// Brings what changed here to the registry.
    pub async fn push_lockfiles(
        &self,
        set: &str,
        space: Space,
        resolve: Resolve,
    ) -> Result<Vec<SyncedLock>, Fault> {
        self.sync(set, space, Way::Push, resolve).await
    }

    /// Brings what changed there here.
    pub async fn pull_lockfiles(
        &self,
        set: &str,
        space: Space,
        resolve: Resolve,
    ) -> Result<Vec<SyncedLock>, Fault> {
        self.sync(set, space, Way::Pull, resolve).await
    }

    async fn sync(
        &self,
        set: &str,
        space: Space,
        way: Way,
        resolve: Resolve,
    ) -> Result<Vec<SyncedLock>, Fault> {
        let mut here: BTreeMap<String, Stored> = BTreeMap::new();
        let locks = self.spaces().locks();
        for entry in locks.entries(space, None, &mut |_, _| ()).map_err(|error| error.fault())? {
            if let Some(problem) = entry.problem {
                return Err(problem);
            }
            here.insert(entry.key.clone(), locks.open(&entry).map_err(|error| error.fault())?);
        }
        let shared = self.registry.lockfiles(set).await.map_err(Fault::from)?;
        let there: BTreeMap<String, SharedLockfile> =
            shared.lockfiles.into_iter().map(|shared| (shared.key.clone(), shared)).collect();
        let file = self.agreed_file(space)?;
        let mut agreed = read(&file);
        let points = agreed.0.entry(format!("{} {set}", self.registry.url())).or_default();
        let keys: std::collections::BTreeSet<&String> = here.keys().chain(there.keys()).collect();
        let mut done = Vec::new();
        for key in keys {
            let sides = Sides { here: here.get(key), there: there.get(key), point: points.get(key).cloned() };
            let wanted = sides.judge(way, resolve)?;
            let point = match wanted {
                Synced::Pushed => Some(self.push(set, key, &sides).await?),
                Synced::Pulled => self.pull(space, key, &sides)?,
                Synced::Unchanged => sides.same(),
                Synced::Behind | Synced::Ahead | Synced::Conflict => None,
            };
            if let Some(point) = point {
                points.insert(key.clone(), point);
            }
            let user = sides.there.map(|there| there.user.clone()).filter(|_| wanted != Synced::Unchanged);
            done.push(SyncedLock { key: key.clone(), state: wanted, user });
        }
        let text = serde_json::to_vec_pretty(&agreed).unwrap_or_default();
        replace_file(&file, &text, 0o644).map_err(|error| error.fault())?;
        Ok(done)
    }

    async fn push(&self, set: &str, key: &str, sides: &Sides<'_>) -> Result<Point, Fault> {
        let Some(here) = sides.here else {
            return Err(Fault::new(ErrorKind::Internal, "there is nothing to push"));
        };
        let lockfile = serde_json::to_value(&here.lock).unwrap_or_default();
        let change = LockfileChange { lockfile, replaces: sides.there.map(|there| there.revision) };
        let shared = self.registry.put_lockfile(set, key, &change).await.map_err(Fault::from)?;
        Ok(Point { revision: shared.revision, digest: digest(&here.lock) })
    }

    fn pull(&self, space: Space, key: &str, sides: &Sides<'_>) -> Result<Option<Point>, Fault> {
        let Some(there) = sides.there else { return Ok(None) };
        let lock = there.read()?;
        let mut name = kiwi_model::lockfile::LockName {
            tool_id: lock.root.tool_id.clone(),
            version: lock.root.version.clone(),
            alternative: None,
        };
        let plain = place(&lock, &name);
        name.alternative = Some(lock.chain_hash.clone());
        let slot = if plain == *key { Slot::Default } else { Slot::Alternative };
        if slot == Slot::Alternative && place(&lock, &name) != *key {
            let message = format!("the registry's lockfile `{key}` speaks of `{plain}`");
            return Err(
                Fault::new(ErrorKind::LockfileMismatch, message).with_hint("nothing was changed by it")
            );
        }
        let locks = self.spaces().locks();
        locks.save(space, &lock, slot).map_err(|error| error.fault())?;
        Ok(Some(Point { revision: there.revision, digest: digest(&lock) }))
    }

    fn agreed_file(&self, space: Space) -> Result<PathBuf, Fault> {
        let ai = self.spaces().ai(space);
        let none = || Fault::new(ErrorKind::NotFound, format!("there is no {space} space here"));
        Ok(ai.ok_or_else(none)?.join("cache/shared_lockfiles.json"))
    }
}

impl Sides<'_> {
    fn judge(&self, way: Way, resolve: Resolve) -> Result<Synced, Fault> {
        let (here, there) = match (self.here, self.there) {
            (Some(_), None) => return Ok(if way == Way::Push { Synced::Pushed } else { Synced::Ahead }),
            (None, Some(_)) => return Ok(if way == Way::Pull { Synced::Pulled } else { Synced::Behind }),
            (None, None) => return Ok(Synced::Unchanged),
            (Some(here), Some(there)) => (here, there),
        };
        let theirs = there.read()?;
        if here.lock.agrees_with(&theirs) {
            return Ok(Synced::Unchanged);
        }
        let is_ours_old = self.point.as_ref().is_some_and(|point| point.digest == digest(&here.lock));
        let is_theirs_old = self.point.as_ref().is_some_and(|point| point.revision == there.revision);
        let winner = match (is_ours_old, is_theirs_old, resolve) {
            (true, false, _) => Side::Theirs,
            (false, true, _) | (_, _, Resolve::Ours) => Side::Ours,
            (_, _, Resolve::Merge) if here.lock.generated_at > theirs.generated_at => Side::Ours,
            (_, _, Resolve::Theirs | Resolve::Merge) => Side::Theirs,
            (_, _, Resolve::Tell) => return Ok(Synced::Conflict),
        };
        Ok(match (winner, way) {
            (Side::Ours, Way::Push) => Synced::Pushed,
            (Side::Theirs, Way::Pull) => Synced::Pulled,
            // A conflict that was decided is settled on both sides at once.
            (Side::Ours, Way::Pull) if is_ours_old == is_theirs_old => Synced::Pushed,
            (Side::Theirs, Way::Push) if is_ours_old == is_theirs_old => Synced::Pulled,
            (Side::Ours, Way::Pull) => Synced::Ahead,
            (Side::Theirs, Way::Push) => Synced::Behind,
        })
    }

    /// Both say the same: from here on a change is one side's.
    fn same(&self) -> Option<Point> {
        let (here, there) = self.here.zip(self.there)?;
        Some(Point { revision: there.revision, digest: digest(&here.lock) })
    }
}

#[derive(Clone, Copy)]
enum Side {
    Ours,
    Theirs,
}

/// Reads what a registry gave as a lockfile.
trait Readable {
    fn read(&self) -> Result<Lockfile, Fault>;
}

impl Readable for SharedLockfile {
    fn read(&self) -> Result<Lockfile, Fault> {
        Lockfile::parse(&self.lockfile.to_string()).map_err(|error| {
            Fault::new(
                ErrorKind::LockfileMismatch,
                format!("the registry's lockfile `{}` cannot be read: {error}", self.key),
            )
        })
    }
}

fn place(lock: &Lockfile, name: &kiwi_model::lockfile::LockName) -> String {
    let file = name.file_name();
    let stem = file.strip_suffix(kiwi_model::lockfile::SUFFIX).unwrap_or(&file);
    match lock.root.category.trim_matches('/') {
        "" => stem.to_owned(),
        category => format!("{category}/{stem}"),
    }
}

fn digest(lock: &Lockfile) -> Digest {
    Digest::of(Lockfile { generated_at: String::new(), ..lock.clone() }.to_text().as_bytes())
}

/// What cannot be read says nothing: then every difference is a conflict, and somebody decides.
fn read(file: &std::path::Path) -> Agreed {
    std::fs::read(file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}
