//! Keeping lockfiles that are used, and letting go of those that are not.

use kiwi_model::Space;
use std::time::{Duration, SystemTime};

use super::entries::view;
use super::place::{inside, path_of};
use super::read::read;
use super::reconcile::{Known, Row, Trust, View, reconcile};
use super::store::Store;
use super::{LockEntry, Locks, time};
use crate::error::SpaceError;

impl Locks<'_> {
    /// Notes that these lockfiles were found good, all at once. Keys that are not there are passed over. The time goes
    /// into the files too, as well as that can be done, so that an index built anew knows it.
    pub fn validated<'k>(
        &self,
        scope: Space,
        keys: impl IntoIterator<Item = &'k str>,
        now: SystemTime,
    ) -> Result<(), SpaceError> {
        let Some(store) = Store::existing(self.home(scope)?)? else { return Ok(()) };
        let mut view = reconcile(&store.root, scope, Trust::Index, &Known::new(), &mut |_, _| {})?;
        let now = time::of_system(now).min(view.updated_at);
        for key in keys {
            let Some(row) = view.rows.get_mut(key).filter(|row| row.problem.is_none()) else { continue };
            row.last_validated = row.last_validated.max(now);
            if let Ok(opened) = store.root.open_file(&inside(&path_of(key)))
                && time::modified(&opened.stat) < now
            {
                time::touch(&opened.file, now);
            }
        }
        store.write_index(&view)
    }

    /// Removes lockfiles that were last known to be good longer ago than `older_than`, and folders left empty. Broken
    /// ones stay: they may hold somebody's work. Gives what was removed, or with `dry_run` what would be.
    pub fn prune(
        &self,
        scope: Space,
        older_than: Duration,
        now: SystemTime,
        dry_run: bool,
    ) -> Result<Vec<LockEntry>, SpaceError> {
        let home = self.home(scope)?;
        let Some(limit) = time::before(now, older_than) else { return Ok(Vec::new()) };
        let is_old = |row: &Row| row.problem.is_none() && row.last_validated < limit;
        if dry_run {
            let rows = view(home, &mut |_, _| {})?.rows.into_iter();
            let old = rows.filter(|(_, row)| is_old(row));
            return Ok(old.map(|(key, row)| LockEntry::new(key, row, scope)).collect());
        }
        let Some(store) = Store::existing(home)? else { return Ok(Vec::new()) };
        let mut view = reconcile(&store.root, scope, Trust::Index, &Known::new(), &mut |_, _| {})?;
        let old: Vec<String> =
            view.rows.iter().filter(|(_, row)| is_old(row)).map(|(key, _)| key.clone()).collect();
        let mut removed = Vec::new();
        let result = old.into_iter().try_for_each(|key| {
            let Some(row) = view.rows.get(&key) else { return Ok(()) };
            if is_as_seen(&store, &view, &key, row) {
                store.remove(&key)?;
                removed.extend(view.rows.remove(&key).map(|row| LockEntry::new(key, row, scope)));
            }
            Ok(())
        });
        if view.changed || !removed.is_empty() || !view.leftovers.is_empty() {
            // The index is a cache: what it lacks is found out by whoever asks it next.
            let _ = store.write_index(&view);
        }
        result.map(|()| removed)
    }
}

/// Whether a lockfile is still good, and nobody used or changed it since it was looked at. A change within the tick of
/// the clock in which that was does not show by its time, so the chain counts too.
fn is_as_seen(store: &Store, view: &View, key: &str, row: &Row) -> bool {
    matches!(
        read(&store.root, key, &row.name),
        Ok(Some(found)) if found.modified <= view.updated_at && found.lock.chain_hash == row.chain_hash
    )
}
