//! Bringing an index in step with its items.

use kiwi_chain::Tool;
use kiwi_model::Space;
use kiwi_search::{Document, Index, KeyHash, Known, Prepared, SearchError, View, carried};
use kiwi_space::Sighting;
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use super::document::{item, of_tool};
use super::tier::{UPSTREAM, upstream_key, upstream_stamp};
use crate::catalogue::Catalogue;

/// Items that are read and embedded at a time.
const BATCH: usize = 256;
/// Fewer are read by whoever asks.
const MANY: usize = 64;
/// More indexed items than this are read by a thread of their own.
const MANY_KNOWN: u64 = 10_000;
/// What is indexed is made durable this often, so that an interrupted build goes on where it was.
const LASTING: Duration = Duration::from_secs(15);

/// Who is told how far indexing is.
pub trait Progress: Sync {
    /// So many of so many are done.
    fn at(&self, space: Space, done: u64, of: u64);
    /// It is over.
    fn end(&self) {}
    /// Whether the asker waits until everything is indexed.
    fn is_patient(&self) -> bool {
        true
    }
    /// Whether to stop; what was done so far stays.
    fn is_over(&self) -> bool {
        false
    }
}

/// Nobody.
pub(super) struct Silent;

impl Progress for Silent {
    fn at(&self, _: Space, _: u64, _: u64) {}
}

/// Somebody who takes what there is rather than wait for much to be indexed.
pub struct Hurried;

impl Progress for Hurried {
    fn at(&self, _: Space, _: u64, _: u64) {}

    fn is_patient(&self) -> bool {
        false
    }
}

/// What may have changed.
#[derive(Debug)]
pub(super) enum Work {
    Everything,
    Folders(BTreeSet<String>),
    /// What upstream servers offer.
    Upstream,
}

/// One round.
pub(super) struct Step<'a> {
    pub space: Space,
    pub catalogue: &'a Catalogue,
    pub index: &'a Index,
    pub progress: &'a dyn Progress,
}

/// Something that lies there.
enum Seen {
    Item(Sighting),
    Upstream(Arc<Tool>),
}

impl Seen {
    fn key(&self) -> String {
        match self {
            Self::Item(sighting) => sighting.key.to_string(),
            Self::Upstream(tool) => upstream_key(tool.manifest.tool_id.as_str()),
        }
    }

    fn group(&self) -> &str {
        match self {
            Self::Item(sighting) => sighting.folder(),
            Self::Upstream(_) => UPSTREAM,
        }
    }

    fn stamp(&self) -> u64 {
        match self {
            Self::Item(sighting) => sighting.stamp,
            Self::Upstream(tool) => upstream_stamp(&tool.integrity.to_string()),
        }
    }
}

/// What differs between what lies there and what is indexed.
struct Differences {
    changed: Vec<Seen>,
    gone: Vec<KeyHash>,
}

impl Differences {
    fn count(&self) -> usize {
        self.changed.len() + self.gone.len()
    }
}

impl Step<'_> {
    /// Indexes what changed, if it is not more than `most`. Says whether all of it is done.
    pub fn take(&self, work: &Work, most: usize) -> Result<bool, SearchError> {
        let view = self.index.view()?;
        let differences = self.differences(work, &view)?;
        let is_first = matches!(work, Work::Everything) && !view.is_complete();
        if differences.count() == 0 && !is_first {
            return Ok(true);
        }
        if differences.count() > most {
            return Ok(false);
        }
        drop(view);
        let mut writer = self.index.write()?;
        // Somebody else may have done it meanwhile.
        let differences = self.differences(work, &*self.index.view()?)?;
        let total = differences.count();
        writer.expect(differences.changed.len());
        for key in differences.gone {
            writer.forget(key)?;
        }
        let mut lasting = Instant::now();
        let mut done = 0_usize;
        let mut add = |prepared: Vec<Prepared>| {
            done += prepared.len();
            writer.add(prepared)?;
            self.progress.at(self.space, done as u64, total as u64);
            if lasting.elapsed() > LASTING {
                writer.commit(false)?;
                lasting = Instant::now();
            }
            Ok(!self.progress.is_over())
        };
        let is_all = self.prepare(&differences.changed, &mut add)?;
        writer.commit(is_all)?;
        writer.finish()?;
        if total >= MANY {
            self.progress.end();
        }
        Ok(is_all)
    }

    /// How many are not indexed as they are. Where a stamp alone differs, the item is read and compared: a file that was
    /// written just before it was indexed has another one by now.
    pub fn behind(&self) -> Result<usize, SearchError> {
        let view = self.index.view()?;
        let differences = self.differences(&Work::Everything, &view)?;
        let is_same =
            |document: &Document| view.at(KeyHash::of(&document.key)).as_ref() == Some(&document.item);
        let changed = differences.changed.chunks(BATCH).map(|seen| {
            let documents = self.documents(seen);
            documents.iter().filter(|document| !is_same(document)).count()
        });
        Ok(changed.sum::<usize>() + differences.gone.len())
    }

    /// Holds what lies there against what is indexed.
    fn differences(&self, work: &Work, view: &View) -> Result<Differences, SearchError> {
        let some = match work {
            Work::Everything => None,
            Work::Folders(folders) => Some(known_in(folders, view)?),
            Work::Upstream => Some(known_in(&BTreeSet::new(), view)?),
        };
        let known = LazyLock::new(|| some.unwrap_or_else(|| view.known()));
        std::thread::scope(|scope| {
            if matches!(work, Work::Everything) && view.len() > MANY_KNOWN {
                // Meanwhile the names of what lies there are read. Without a thread it is read when it is needed.
                let begin = || {
                    LazyLock::force(&known);
                };
                let _ = std::thread::Builder::new().spawn_scoped(scope, carried(begin));
            }
            self.compared(work, &known)
        })
    }

    fn compared(
        &self,
        work: &Work,
        known: &(impl Deref<Target = Known> + Sync),
    ) -> Result<Differences, SearchError> {
        let spaces = &self.catalogue.spaces;
        let is_known = |key: &str, stamp: u64| known.meet(KeyHash::of(key), stamp);
        let sightings = match work {
            Work::Everything => spaces.news(self.space, None, &is_known),
            Work::Folders(folders) => spaces.news(self.space, Some(folders), &is_known),
            Work::Upstream => Ok(Vec::new()),
        };
        let sightings = sightings.map_err(|error| SearchError::Unusable {
            path: spaces.ai(self.space).map(std::path::Path::to_path_buf).unwrap_or_default(),
            source: std::io::Error::other(error),
        })?;
        let upstream = self.catalogue.upstreams.tools().into_iter().filter(|tool| tool.space == self.space);
        let upstream = upstream.map(Seen::Upstream).filter(|seen| !is_known(&seen.key(), seen.stamp()));
        let changed = sightings.into_iter().map(Seen::Item).chain(upstream).collect();
        Ok(Differences { changed, gone: known.unmet().collect() })
    }

    /// Reads and embeds, on as many threads as there are cores; `add` takes what is ready, and says whether to go on.
    fn prepare(
        &self,
        changed: &[Seen],
        add: &mut dyn FnMut(Vec<Prepared>) -> Result<bool, SearchError>,
    ) -> Result<bool, SearchError> {
        if changed.len() < MANY {
            return add(self.index.prepare(&self.documents(changed))?);
        }
        let batches: Vec<&[Seen]> = changed.chunks(BATCH).collect();
        let next = AtomicUsize::new(0);
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let (send, receive) = sync_channel::<Result<Vec<Prepared>, SearchError>>(2 * threads);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let (send, batches, next) = (send.clone(), &batches, &next);
                scope.spawn(move || {
                    while let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
                        // Whoever takes them may have stopped.
                        if send.send(self.index.prepare(&self.documents(batch))).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(send);
            for prepared in receive {
                if !add(prepared?)? {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    fn documents(&self, seen: &[Seen]) -> Vec<Document> {
        let document = |seen: &Seen| {
            let item = match seen {
                Seen::Item(sighting) => {
                    let read = self.catalogue.spaces.sighted(self.space, sighting);
                    // What was changed since it was installed is no item either.
                    let is_sound = |sighted: &kiwi_space::Sighted| match sighted {
                        kiwi_space::Sighted::Tool(tool) => kiwi_chain::verify(tool).is_ok(),
                        kiwi_space::Sighted::Text(_) => true,
                    };
                    read.ok().filter(is_sound).map(|sighted| item(&sighted))
                }
                Seen::Upstream(tool) => Some(of_tool(tool)),
            };
            Document { key: seen.key(), group: seen.group().to_owned(), stamp: seen.stamp(), item }
        };
        seen.iter().map(document).collect()
    }
}

/// What is indexed of some folders, and of what servers offer.
fn known_in(folders: &BTreeSet<String>, view: &View) -> Result<Known, SearchError> {
    let mut known = view.known_in(UPSTREAM)?;
    for folder in folders {
        known.extend(view.known_in(folder)?);
    }
    Ok(known)
}
