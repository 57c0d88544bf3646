//! Asking about many lockfiles at once.

use kiwi_model::lockfile::LockName;
use kiwi_model::{Fault, Space, ToolId};

use super::Locks;
use super::place::{check_category, is_within, path_of, split};
use super::reconcile::{Known, Progress, Row, Trust, View, reconcile};
use super::store::Store;
use crate::error::SpaceError;
use crate::root::Root;
use crate::spaces::Home;

/// One lockfile of a listing. Times are RFC 3339.
#[derive(Debug, Clone, PartialEq)]
pub struct LockEntry {
    /// Its key in the index: `category/tool@version`, with `.hash` behind it for an alternative.
    pub key: String,
    /// The file, from the folder of lockfiles.
    pub path: String,
    /// What its name says.
    pub name: LockName,
    /// Its category.
    pub category: String,
    /// The short hash of its chain; empty if it is broken.
    pub chain_hash: String,
    /// When it was made.
    pub created_at: String,
    /// When it was last known to be good.
    pub last_validated: String,
    /// Whose it is.
    pub scope: Space,
    /// Why it cannot be used.
    pub problem: Option<Fault>,
}

impl LockEntry {
    pub(super) fn new(key: String, row: Row, scope: Space) -> Self {
        Self {
            path: path_of(&key),
            category: split(&key).0.to_owned(),
            key,
            name: row.name,
            chain_hash: row.chain_hash,
            created_at: row.created_at.to_string(),
            last_validated: row.last_validated.to_string(),
            scope,
            problem: row.problem,
        }
    }
}

impl Locks<'_> {
    /// The lockfiles of a scope by key, broken ones too; with a category only those in it and below it. `progress` is
    /// told how many of how many files had to be read, which is none when the index is good.
    pub fn entries(
        &self,
        scope: Space,
        category: Option<&str>,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<impl Iterator<Item = LockEntry> + use<>, SpaceError> {
        let category = category.unwrap_or_default().to_owned();
        check_category(&category)?;
        let view = view(self.home(scope)?, progress)?;
        let rows = view.rows.into_iter().filter(move |(key, _)| is_within(split(key).0, &category));
        Ok(rows.map(move |(key, row)| LockEntry::new(key, row, scope)))
    }

    /// Every lockfile of a tool: all versions, categories and chains, the project's before the user's.
    pub fn of(&self, id: &ToolId) -> Result<Vec<LockEntry>, SpaceError> {
        let mut entries = Vec::new();
        for home in self.homes() {
            let view = view(home, &mut |_, _| {})?;
            let rows = view.rows.into_iter().filter(|(_, row)| row.name.tool_id == *id);
            entries.extend(rows.map(|(key, row)| LockEntry::new(key, row, home.space)));
        }
        Ok(entries)
    }

    /// Reads every file of a scope again and writes the index anew. Says how many lockfiles there are.
    pub fn rebuild(&self, scope: Space, progress: &mut dyn FnMut(usize, usize)) -> Result<usize, SpaceError> {
        let Some(store) = Store::existing(self.home(scope)?)? else { return Ok(0) };
        let view = reconcile(&store.root, scope, Trust::Nothing, &Known::new(), progress)?;
        store.write_index(&view)?;
        Ok(view.rows.len())
    }
}

/// The store as it is. The index is mended on the way if nobody else is writing and it can be written at all.
pub(super) fn view(home: &Home, progress: Progress<'_>) -> Result<View, SpaceError> {
    let Some(root) = Root::open(&home.ai)? else { return Ok(View::default()) };
    let view = reconcile(&root, home.space, Trust::Index, &Known::new(), progress)?;
    if !view.changed {
        return Ok(view);
    }
    let Some(store) = Store::idle(home) else { return Ok(view) };
    // Another may have written since: look again, now that nobody can, without reading the same files twice.
    let view = reconcile(&store.root, home.space, Trust::Index, &view.read, &mut |_, _| {})?;
    let _ = store.write_index(&view);
    Ok(view)
}
