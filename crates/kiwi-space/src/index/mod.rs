//! Which folder holds which tool, without looking through all of them.
//!
//! The index remembers each category folder's stamp and, by id, where every tool lies. A lookup stats the category
//! folders only (in a process that lives on, it asks the kernel once), reads again those that changed, and then searches. Editing a tool does not touch its category folder;
//! adding, renaming or removing one does.
//!
//! One change leaves no trace in a category folder: a tool's folder that loses its `tool.yaml`. It is noticed when that
//! tool is looked up and whenever everything is listed.

mod buckets;
mod file;
mod scan;
mod watch;

pub(crate) use scan::Odd;

use kiwi_model::ToolId;
use rustix::io::Errno;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::counters::{Counter, Counters};
use crate::error::SpaceError;
use crate::kind::{Item, Kind};
use crate::root::Root;
use crate::stamp::Stamp;
use buckets::Buckets;
use scan::scan;
use watch::Watch;

/// Lookups that one snapshot remembers.
const MEMORY: usize = 4096;

/// The index of one space.
#[derive(Default)]
pub(crate) struct Index {
    current: Mutex<Option<Arc<Snapshot>>>,
}

/// A category folder as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// From the space's root (`tools/data`).
    path: String,
    /// `None` where there was no such folder.
    stamp: Option<Stamp>,
    /// Whether any change since must show in the stamp.
    settled: bool,
}

impl Row {
    fn is_current(&self, stamp: Option<&Stamp>) -> bool {
        self.settled && self.stamp.as_ref() == stamp
    }
}

/// Where one tool lies. The derived order is the order of the index: by id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot {
    id: ToolId,
    folder: u32,
    kind: Kind,
}

/// One state of the index.
pub(crate) struct Snapshot {
    rows: Vec<Row>,
    spots: Spots,
    found: Mutex<HashMap<ToolId, Arc<[Spot]>>>,
    watch: Watch,
    /// Folders that could not be looked into when they were last read. Such a folder is read again at every lookup.
    closed: Vec<Closed>,
}

/// A folder that cannot be looked into.
pub(crate) struct Closed {
    /// From the space's root.
    path: String,
    error: Errno,
}

/// Where the sorted spots are.
enum Spots {
    /// Made by this process.
    Memory(Vec<Spot>),
    /// In the file; only the bucket that a lookup needs is read.
    File(Buckets),
}

/// The index file does not hold what it says.
struct Corrupt;

/// Everything there is, for listings.
pub(crate) struct Everything {
    pub(crate) items: Vec<Item>,
    pub(crate) odd: Vec<Odd>,
}

impl Index {
    /// The tools called `id`.
    pub(crate) fn find(
        &self,
        root: &Root,
        id: &ToolId,
        counters: &Counters,
    ) -> Result<Vec<Item>, SpaceError> {
        let snapshot = self.current(root, counters)?;
        if let Ok(spots) = snapshot.find(id) {
            return Ok(snapshot.items(&spots));
        }
        counters.add(Counter::IndexRebuilds);
        let (snapshot, _) = self.rebuild(root, counters)?;
        Ok(snapshot.find(id).map(|spots| snapshot.items(&spots)).unwrap_or_default())
    }

    /// Why what the last lookup did not find may be there all the same: a folder that cannot be looked into.
    pub(crate) fn closed(&self, root: &Root) -> Option<SpaceError> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let closed = current.as_ref()?.closed.first()?;
        Some(SpaceError::unreadable(root.absolute(&closed.path), closed.error))
    }

    /// Every tool, from a fresh look at every folder.
    pub(crate) fn everything(&self, root: &Root, counters: &Counters) -> Result<Everything, SpaceError> {
        let (snapshot, odd) = self.rebuild(root, counters)?;
        let items = match &snapshot.spots {
            Spots::Memory(spots) => snapshot.items(spots),
            Spots::File(_) => Vec::new(),
        };
        Ok(Everything { items, odd })
    }

    /// Every tool in a row that is wanted, put into a collection by `add` as row, id and form; beside it the paths of
    /// all rows. Nothing is built or written where nothing changed.
    pub(crate) fn collect<T: Default>(
        &self,
        root: &Root,
        counters: &Counters,
        is_wanted: impl Fn(&str) -> bool,
        add: impl Fn(&mut T, u32, &str, Kind),
    ) -> Result<(Vec<String>, T), SpaceError> {
        let collect = |snapshot: &Snapshot| {
            let wanted: Vec<bool> = snapshot.rows.iter().map(|row| is_wanted(&row.path)).collect();
            let mut all = T::default();
            snapshot.each(&mut |row, id, kind| {
                if wanted.get(row as usize) == Some(&true) {
                    add(&mut all, row, id, kind);
                }
            })?;
            Ok((snapshot.rows.iter().map(|row| row.path.clone()).collect(), all))
        };
        if let Ok(collected) = collect(&*self.current(root, counters)?) {
            return Ok(collected);
        }
        counters.add(Counter::IndexRebuilds);
        let (snapshot, _) = self.rebuild(root, counters)?;
        Ok(collect(&snapshot).unwrap_or_else(|Corrupt| (Vec::new(), T::default())))
    }

    /// Looks at every folder again, whatever the stamps say.
    pub(crate) fn rebuild(
        &self,
        root: &Root,
        counters: &Counters,
    ) -> Result<(Arc<Snapshot>, Vec<Odd>), SpaceError> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let scanned = scan(root, None, counters)?;
        let same = current.as_ref().is_some_and(|before| {
            before.rows == scanned.rows
                && matches!(&before.spots, Spots::Memory(spots) if *spots == scanned.spots)
        });
        let snapshot = Arc::new(Snapshot::of(scanned.rows, scanned.spots, scanned.closed));
        if !same {
            snapshot.save(root);
        }
        *current = Some(Arc::clone(&snapshot));
        Ok((snapshot, scanned.odd))
    }

    /// The snapshot that is true now.
    fn current(&self, root: &Root, counters: &Counters) -> Result<Arc<Snapshot>, SpaceError> {
        let held = self.current.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(snapshot) = held.filter(|snapshot| snapshot.is_current(root)) {
            counters.add(Counter::IndexHits);
            return Ok(snapshot);
        }
        // Held while reading folders, so that many threads do not read the same ones.
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match current.take() {
            Some(snapshot) => Some(snapshot),
            None => file::load(root).map(Arc::new),
        };
        let snapshot = match before {
            Some(snapshot) if snapshot.is_current(root) => {
                counters.add(Counter::IndexHits);
                snapshot
            }
            before => {
                counters.add(Counter::IndexMisses);
                refresh(root, before.as_deref(), counters)?
            }
        };
        *current = Some(Arc::clone(&snapshot));
        Ok(snapshot)
    }
}

/// Reads what changed since `before`, and writes the result down.
fn refresh(root: &Root, before: Option<&Snapshot>, counters: &Counters) -> Result<Arc<Snapshot>, SpaceError> {
    let known = before.and_then(|before| match &before.spots {
        Spots::Memory(spots) => Some((before, spots.clone())),
        Spots::File(buckets) => buckets.all(before.rows.len()).ok().map(|spots| (before, spots)),
    });
    if known.is_none() {
        counters.add(Counter::IndexRebuilds);
    }
    let scanned = scan(root, known.as_ref().map(|(before, spots)| (*before, spots.as_slice())), counters)?;
    let same = known.is_some_and(|(before, spots)| before.rows == scanned.rows && spots == scanned.spots);
    let snapshot = Arc::new(Snapshot::of(scanned.rows, scanned.spots, scanned.closed));
    if !same {
        snapshot.save(root);
    }
    Ok(snapshot)
}

impl Snapshot {
    fn new(rows: Vec<Row>, spots: Spots) -> Self {
        Self { rows, spots, found: Mutex::default(), watch: Watch::default(), closed: Vec::new() }
    }

    /// What a scan found.
    fn of(rows: Vec<Row>, spots: Vec<Spot>, closed: Vec<Closed>) -> Self {
        Self { closed, ..Self::new(rows, Spots::Memory(spots)) }
    }

    fn is_current(&self, root: &Root) -> bool {
        if self.watch.is_quiet(root) {
            return true;
        }
        let as_stamped = || self.rows.iter().all(|row| row.is_current(root.folder_stamp(&row.path).as_ref()));
        let mut paths = self.rows.iter().map(|row| row.path.as_str());
        as_stamped() && (!self.watch.note(root, &mut paths) || as_stamped())
    }

    fn find(&self, id: &ToolId) -> Result<Arc<[Spot]>, Corrupt> {
        let spots = match &self.spots {
            Spots::Memory(spots) => {
                let start = spots.partition_point(|spot| spot.id < *id);
                return Ok(spots.iter().skip(start).take_while(|spot| spot.id == *id).cloned().collect());
            }
            Spots::File(buckets) => {
                if let Some(spots) = self.found.lock().unwrap_or_else(PoisonError::into_inner).get(id) {
                    return Ok(Arc::clone(spots));
                }
                buckets.find(id, self.rows.len())?
            }
        };
        let spots: Arc<[Spot]> = spots.into();
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if found.len() >= MEMORY {
            found.clear();
        }
        found.insert(id.clone(), Arc::clone(&spots));
        Ok(spots)
    }

    /// Shows every spot: row, id and form.
    fn each(&self, see: &mut dyn FnMut(u32, &str, Kind)) -> Result<(), Corrupt> {
        match &self.spots {
            Spots::Memory(spots) => {
                for spot in spots {
                    see(spot.folder, spot.id.as_str(), spot.kind);
                }
                Ok(())
            }
            Spots::File(buckets) => buckets.each(self.rows.len(), see),
        }
    }

    fn items(&self, spots: &[Spot]) -> Vec<Item> {
        let item = |spot: &Spot| {
            let folder = self.rows.get(spot.folder as usize)?.path.clone();
            Some(Item::Tool { id: spot.id.clone(), folder, kind: spot.kind })
        };
        spots.iter().filter_map(item).collect()
    }

    /// Best effort: a space that cannot be written is read from memory.
    fn save(&self, root: &Root) {
        if let Spots::Memory(spots) = &self.spots {
            let _ = file::save(root, &self.rows, spots);
        }
    }
}
