//! Building an index of many items, on as many threads as there are cores.

use anyhow::{Context, Result};
use kiwi_search::{Document, Index, Prepared, StaticEmbedder};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use super::items::Items;
use super::sets::document;

/// Items that are embedded at a time.
const BATCH: usize = 512;

/// An index that was built, and what that took.
pub struct Built {
    /// The index.
    pub index: Index,
    /// Items in it.
    pub count: usize,
    /// From the first item to the last byte.
    pub took: Duration,
}

impl Built {
    /// Builds an index of the first `count` items in a folder.
    pub fn make(folder: &Path, items: &Items, count: usize) -> Result<Self> {
        let since = Instant::now();
        let (index, _) = Index::open(folder, Arc::new(StaticEmbedder::new()))?;
        let mut writer = index.write()?;
        writer.expect(count);
        let next = AtomicUsize::new(0);
        let threads = threads();
        let (send, receive) = sync_channel::<Result<Vec<Prepared>>>(2 * threads);
        std::thread::scope(|scope| -> Result<()> {
            for _ in 0..threads {
                let (send, next, index) = (send.clone(), &next, &index);
                scope.spawn(move || {
                    loop {
                        let from = next.fetch_add(BATCH, Ordering::Relaxed);
                        let numbers = from..count.min(from.saturating_add(BATCH));
                        if numbers.is_empty() {
                            break;
                        }
                        let documents: Vec<Document> =
                            numbers.map(|number| document(number, items.item(number))).collect();
                        if send.send(index.prepare(&documents).map_err(Into::into)).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(send);
            for prepared in receive {
                writer.add(prepared?)?;
            }
            Ok(())
        })?;
        writer.commit(true)?;
        writer.finish()?;
        Ok(Self { index, count, took: since.elapsed() })
    }

    /// How many segments it has.
    pub fn segments(&self) -> Result<usize> {
        let folder = self.index.folder().context("the index is in memory")?;
        let meta: Value = serde_json::from_slice(&std::fs::read(folder.join("meta.json"))?)?;
        Ok(meta.get("segments").and_then(Value::as_array).context("no segments in its list")?.len())
    }
}

/// As many threads as there are cores.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// How many bytes the files of a folder and those below it have, by what their names end with.
pub fn bytes(folder: &Path) -> Result<std::collections::BTreeMap<String, u64>> {
    let mut sizes = std::collections::BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            for (ending, size) in bytes(&entry.path())? {
                *sizes.entry(ending).or_default() += size;
            }
        } else {
            let ending = entry.path().extension().unwrap_or_default().to_string_lossy().into_owned();
            *sizes.entry(ending).or_default() += entry.metadata()?.len();
        }
    }
    Ok(sizes)
}
