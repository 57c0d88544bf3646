//! Projects with lockfiles: one that `kiwi lockfile freeze` made, and as many more of its shape as asked for.

use anyhow::{Context, Result};
use kiwi_model::lockfile::{LockName, Lockfile, short_chain_hash};
use kiwi_model::{Digest, ToolId, Version};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::cold::once;
use crate::fixture::Project;

/// The tool whose lockfile is real; it lies in the one large folder.
pub const TOOL: &str = "greet";
const LARGE: &str = "bulk";
/// One in so many lies in the large folder.
const LARGE_SHARE: usize = 5;
const AREAS: usize = 10;
const PARTS: usize = 20;
/// One in so many was not used for long.
const OLD_SHARE: usize = 10;
const OLD: Duration = Duration::from_hours(24 * 200);
/// Long before anything that is old.
const MADE: &str = "2024-01-24T12:00:00Z";
/// Tools that were not frozen yet.
const FRESH: usize = 16;

/// A project with lockfiles.
pub struct Store {
    /// The project.
    pub project: Project,
    /// Category and id of all but the real one.
    pub entries: Vec<(String, ToolId)>,
}

impl Store {
    /// Writes tools, freezes one, and makes `others` more lockfiles of the same shape, without waiting for the disk.
    pub fn write(folder: PathBuf, kiwi: &Path, others: usize) -> Result<Self> {
        let project = Project::write(folder, 0)?;
        write_tool(&project, LARGE, TOOL)?;
        for number in 0..FRESH {
            write_tool(&project, "fresh", &fresh(number))?;
        }
        once(project.command(kiwi).args(["lockfile", "freeze", TOOL]), true)?;
        let store = project.root().join(".ai/lockfiles");
        let real = store.join(LARGE).join(format!("{TOOL}@1.0.0.lock.json"));
        let real = fs::read_to_string(&real).with_context(|| format!("cannot read {}", real.display()))?;
        let real = Lockfile::parse(&real)?;
        let mut entries = Vec::with_capacity(others);
        for number in 0..others {
            let lock = like(&real, number)?;
            write_lock(&store, &lock, number % OLD_SHARE == 1)?;
            entries.push((lock.root.category, lock.root.tool_id));
        }
        Ok(Self { project, entries })
    }

    /// How many lockfiles there are at first.
    pub fn count(&self) -> usize {
        self.entries.len() + 1
    }
}

/// The id of a tool that was not frozen yet.
pub fn fresh(number: usize) -> String {
    format!("fresh_{number:02}")
}

fn write_tool(project: &Project, category: &str, id: &str) -> Result<()> {
    let folder = project.root().join(".ai/tools").join(category);
    fs::create_dir_all(&folder)?;
    let script = format!("#!/usr/bin/env bash\n# kiwi: version: 1.0.0\necho {id}\n");
    Ok(fs::write(folder.join(format!("{id}.sh")), script)?)
}

/// The same agreement about another tool.
fn like(real: &Lockfile, number: usize) -> Result<Lockfile> {
    let mut lock = real.clone();
    let id = ToolId::parse(&format!("tool_{number:06}"))?;
    let integrity = Digest::of(id.as_str().as_bytes());
    let leaf = lock.resolved_chain.first_mut().context("the real lockfile has no chain")?;
    (leaf.tool_id, leaf.integrity) = (id.clone(), integrity);
    (lock.root.tool_id, lock.root.integrity) = (id, integrity);
    lock.root.category = category(number);
    lock.chain_hash = short_chain_hash(&lock.resolved_chain);
    MADE.clone_into(&mut lock.generated_at);
    Ok(lock)
}

/// A fifth in one folder, the others evenly in two hundred.
fn category(number: usize) -> String {
    if number.is_multiple_of(LARGE_SHARE) {
        return LARGE.to_owned();
    }
    let number = number - number / LARGE_SHARE - 1;
    format!("area_{}/part_{:02}", number % AREAS, number / AREAS % PARTS)
}

fn write_lock(store: &Path, lock: &Lockfile, is_old: bool) -> Result<()> {
    let name =
        LockName { tool_id: lock.root.tool_id.clone(), version: Version::new(1, 0, 0), alternative: None };
    let folder = store.join(&lock.root.category);
    fs::create_dir_all(&folder)?;
    let mut file = File::create(folder.join(name.file_name()))?;
    file.write_all(lock.to_text().as_bytes())?;
    if is_old {
        file.set_modified(SystemTime::now().checked_sub(OLD).context("the clock is wrong")?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn folders_are_as_the_table_says() {
        let mut folders = BTreeMap::new();
        for number in 0..100_000 {
            *folders.entry(category(number)).or_insert(0) += 1;
        }
        assert_eq!(folders.remove(LARGE), Some(20_000));
        assert_eq!(folders.len(), AREAS * PARTS);
        assert!(folders.values().all(|count| *count == 400));
    }
}
