//! The index of one space.

use kiwi_model::{Fault, Space};
use kiwi_search::{Embedder, Index, KeyHash, SearchError, StaticEmbedder, View, contained};
use kiwi_space::{Stirred, Watcher};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use super::step::{Progress, Silent, Step, Work};
use crate::catalogue::Catalogue;

const FOLDER: &str = "vectors";
/// More changes than this are left to whoever keeps the index, where somebody does.
const FEW: usize = 500;
/// How old a look may be where nobody is told of changes; where looking takes long, so many times as long.
const FRESH: Duration = Duration::from_millis(500);
const RESTING: u32 = 10;
/// How often it is tried to be told of changes.
const AGAIN: Duration = Duration::from_secs(10);

/// Who does not want to wait waits so long for whoever indexes: for a first build longer than for a change.
const FIRST: Duration = Duration::from_secs(3);
const LATER: Duration = Duration::from_millis(300);
const GLANCE: Duration = Duration::from_millis(5);

/// The index of a space, and what is known about how far it has got.
pub(super) struct Tier {
    pub space: Space,
    catalogue: Arc<Catalogue>,
    embedder: Arc<dyn Embedder>,
    /// Whether somebody lives on and looks after it.
    is_kept: AtomicBool,
    /// Held for a moment only, so that searching never waits for indexing.
    opened: Mutex<Opened>,
    /// Held by whoever indexes.
    state: Mutex<State>,
}

#[derive(Default, Clone)]
struct Opened {
    index: Option<Arc<Index>>,
    /// Serves until the index that is wanted is complete.
    before: Option<Arc<Index>>,
    /// Whether it was begun again because it was damaged, and is not full yet.
    is_mended: bool,
}

#[derive(Default)]
struct State {
    watcher: Option<Watcher>,
    /// When it was last tried to be told of changes.
    tried: Option<Instant>,
    /// When everything was last looked at, and how long that took.
    looked: Option<(Instant, Duration)>,
    /// When it was last looked what servers offer.
    asked: Option<Instant>,
    /// Whether there is work that was left for later.
    is_behind: bool,
    /// Whether it was tried to remove what older versions left.
    is_swept: bool,
}

/// How far an index is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TierState {
    /// Whose items.
    pub space: Space,
    /// Where it lies; nothing for one in memory.
    pub folder: Option<PathBuf>,
    /// Whose vectors it has.
    pub embedder: String,
    /// Items that can be found.
    pub items: u64,
    /// What lies where items lie and is none.
    pub refused: u64,
    /// Whether everything there is has been indexed.
    pub complete: bool,
    /// What is not indexed as it is now.
    pub behind: u64,
    /// Its files, in bytes.
    pub bytes: u64,
}

/// What holding an index against its items showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TierCheck {
    /// Whose items.
    pub space: Space,
    /// Documents that were compared.
    pub documents: u64,
    /// What is wrong, a line each.
    pub faults: Vec<String>,
}

impl Tier {
    pub fn new(space: Space, catalogue: Arc<Catalogue>, embedder: Arc<dyn Embedder>) -> Self {
        Self {
            space,
            catalogue,
            embedder,
            is_kept: AtomicBool::new(false),
            opened: Mutex::default(),
            state: Mutex::default(),
        }
    }

    fn state_of(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn opened(&self) -> MutexGuard<'_, Opened> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The turn to index, if it comes within a while.
    fn state_soon(&self) -> Option<MutexGuard<'_, State>> {
        let is_whole = || {
            let index = self.opened().index.clone();
            index.is_some_and(|index| index.view().is_ok_and(|view| view.is_complete()))
        };
        let begun = Instant::now();
        loop {
            match self.state.try_lock() {
                Ok(state) => return Some(state),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) if begun.elapsed() > FIRST => return None,
                Err(TryLockError::WouldBlock) if begun.elapsed() > LATER && is_whole() => return None,
                Err(TryLockError::WouldBlock) => std::thread::sleep(GLANCE),
            }
        }
    }

    /// The folder of the index; nothing for a space that is not on disk, or not there yet.
    fn folder(&self) -> Option<PathBuf> {
        self.catalogue.spaces.ai(self.space).filter(|ai| ai.is_dir()).map(|ai| ai.join(FOLDER))
    }

    /// Whether it was ever asked for.
    pub fn is_open(&self) -> bool {
        self.opened().index.is_some()
    }

    /// The index, opened; nothing where there is no space.
    fn open(&self, warnings: &mut Vec<String>) -> Result<Option<Arc<Index>>, SearchError> {
        let mut opened = self.opened();
        if let Some(index) = &opened.index {
            return Ok(Some(Arc::clone(index)));
        }
        let index = match self.folder() {
            None if self.space != Space::System => return Ok(None),
            // The system's items are few and never change while Kiwi runs; names and words rank them well enough.
            None => Index::in_memory(Arc::new(StaticEmbedder::new()))?,
            Some(folder) => match Index::open(&folder, Arc::clone(&self.embedder)) {
                Ok((index, damage)) => {
                    opened.is_mended = damage.is_some();
                    warnings.extend(damage.as_ref().map(built_again));
                    opened.before = self.earlier(&folder, &index)?;
                    index
                }
                // A folder that cannot be written: what is found is found in memory.
                Err(SearchError::Unusable { path, source }) => {
                    warnings.push(format!(
                        "`{}` cannot be written ({source}); searching without it",
                        path.display()
                    ));
                    Index::in_memory(Arc::clone(&self.embedder))?
                }
                Err(error) => return Err(error),
            },
        };
        Ok(Some(Arc::clone(opened.index.insert(Arc::new(index)))))
    }

    /// The index of the built-in embedder, if it is whole and the one that is wanted is not yet.
    fn earlier(&self, folder: &std::path::Path, index: &Index) -> Result<Option<Arc<Index>>, SearchError> {
        let plain: Arc<dyn Embedder> = Arc::new(StaticEmbedder::new());
        let is_other = plain.id() != self.embedder.id();
        if !is_other || index.view()?.is_complete() || !Index::exists(folder, plain.as_ref()) {
            return Ok(None);
        }
        let (earlier, _) = Index::open(folder, plain)?;
        Ok(earlier.view()?.is_complete().then(|| Arc::new(earlier)))
    }

    /// What can be searched now.
    pub fn view(&self) -> Result<Option<Arc<View>>, Fault> {
        let opened = self.opened().clone();
        let index = match (&opened.index, &opened.before) {
            (Some(index), Some(before)) => {
                let is_whole = index.view().is_ok_and(|view| view.is_complete());
                Some(if is_whole { index } else { before })
            }
            (index, _) => index.as_ref(),
        };
        index.map(|index| index.view().map_err(|error| super::fault(&error))).transpose()
    }

    /// Indexes what changed. Where somebody keeps the index, much is left to them.
    pub fn catch_up(&self, patient: bool, progress: &dyn Progress) -> Vec<String> {
        let mut warnings = Vec::new();
        let state = if patient { Some(self.state_of()) } else { self.state_soon() };
        let Some(mut state) = state else {
            warnings.push("items are being indexed; what is found may not be all there is".to_owned());
            return warnings;
        };
        let step =
            |state: &mut State, warnings: &mut Vec<String>| self.step(state, patient, progress, warnings);
        if let Err(error) = self.mended(&mut state, &mut warnings, step) {
            warnings.push(error.to_string());
        }
        warnings
    }

    /// Does something with the index. What then shows to be damaged is begun again, and it is done once more.
    fn mended<T>(
        &self,
        state: &mut State,
        warnings: &mut Vec<String>,
        work: impl Fn(&mut State, &mut Vec<String>) -> Result<T, SearchError>,
    ) -> Result<T, SearchError> {
        let unreadable = || SearchError::unreadable(&self.folder().unwrap_or_default());
        let once = |state: &mut State, warnings: &mut Vec<String>| {
            contained(|| work(state, warnings)).unwrap_or_else(|| Err(unreadable()))
        };
        match once(state, warnings) {
            Err(damage @ SearchError::Damaged { .. }) => {
                warnings.push(built_again(&damage));
                self.begin_again(state)?;
                once(state, warnings)
            }
            done => done,
        }
    }

    /// What was begun again because it was damaged is filled at once.
    fn fill(
        &self,
        state: &mut State,
        progress: &dyn Progress,
        warnings: &mut Vec<String>,
    ) -> Result<(), SearchError> {
        let is_mended = self.opened().is_mended;
        if is_mended { self.step(state, true, progress, warnings) } else { Ok(()) }
    }

    fn step(
        &self,
        state: &mut State,
        patient: bool,
        progress: &dyn Progress,
        warnings: &mut Vec<String>,
    ) -> Result<(), SearchError> {
        let Some(index) = self.open(warnings)? else { return Ok(()) };
        let most = if patient || !self.is_kept() { usize::MAX } else { FEW };
        let Some(work) = self.stirred(state) else { return Ok(()) };
        let step = Step { space: self.space, catalogue: &self.catalogue, index: &index, progress };
        let begun = Instant::now();
        // What was told once is not told again: until it is indexed, everything has to be looked at.
        let was_behind = std::mem::replace(&mut state.is_behind, true);
        let done = step.take(&work, most)?;
        state.is_behind = !done || (was_behind && !matches!(work, Work::Everything));
        state.asked = Some(Instant::now());
        if matches!(work, Work::Everything) {
            state.looked = Some((Instant::now(), begun.elapsed()));
        }
        if done {
            self.opened().is_mended = false;
        }
        let before = if done { self.opened().before.take() } else { None };
        if let Some(folder) = self.folder().filter(|_| done && index.folder().is_some()) {
            if before.is_some() {
                Index::remove_others(&folder, self.embedder.as_ref());
            } else if !std::mem::replace(&mut state.is_swept, true) {
                Index::remove_older(&folder, self.embedder.as_ref());
            }
        }
        Ok(())
    }

    /// What there is to look at, if anything.
    fn stirred(&self, state: &mut State) -> Option<Work> {
        if self.space == Space::System {
            return state.looked.is_none().then_some(Work::Everything);
        }
        let is_due = state.tried.is_none_or(|tried| tried.elapsed() > AGAIN);
        if self.is_kept() && state.watcher.is_none() && is_due {
            // Before everything is looked at, so that nothing falls between.
            state.watcher = self.catalogue.spaces.watch(self.space).ok().flatten();
            state.tried = Some(Instant::now());
            if state.watcher.is_some() {
                state.looked = None;
            }
        }
        let told = state.watcher.as_mut().map(|watcher| watcher.wait(Duration::ZERO));
        match (told, state.looked) {
            _ if state.is_behind => Some(Work::Everything),
            (Some(Stirred::Nothing), Some(_)) => {
                state.asked.is_none_or(|asked| asked.elapsed() > FRESH).then_some(Work::Upstream)
            }
            (Some(Stirred::Folders(folders)), Some(_)) => Some(Work::Folders(folders)),
            (None, Some((at, took))) if at.elapsed() < FRESH.max(took * RESTING) => None,
            _ => Some(Work::Everything),
        }
    }

    /// Says that somebody lives on and looks after it.
    pub fn keep(&self) {
        self.is_kept.store(true, Ordering::Release);
    }

    fn is_kept(&self) -> bool {
        self.is_kept.load(Ordering::Acquire)
    }

    /// Brings it up to date, all of it. Every file is read first: one that is not as it was written is mended with the rest.
    pub fn build(&self, progress: &dyn Progress) -> Result<Vec<String>, SearchError> {
        let mut warnings = Vec::new();
        let mut state = self.state_of();
        self.mended(&mut state, &mut warnings, |state, warnings| {
            if let Some(index) = self.open(warnings)? {
                index.check_files()?;
            }
            state.looked = None;
            self.step(state, true, progress, warnings)
        })?;
        Ok(warnings)
    }

    /// Throws it away and makes it again, as far as there is patience for it.
    pub fn rebuild(&self, progress: &dyn Progress) -> Result<Vec<String>, SearchError> {
        let mut warnings = Vec::new();
        let mut state = self.state_of();
        self.begin_again(&mut state)?;
        self.step(&mut state, progress.is_patient(), progress, &mut warnings)?;
        Ok(warnings)
    }

    /// Throws it away.
    fn begin_again(&self, state: &mut State) -> Result<(), SearchError> {
        *state = State::default();
        *self.opened() = Opened::default();
        if let Some(folder) = self.folder() {
            self.opened().index = match Index::anew(&folder, Arc::clone(&self.embedder)) {
                Ok(index) => Some(Arc::new(index)),
                Err(SearchError::Unusable { .. }) => None,
                Err(error) => return Err(error),
            };
        }
        self.opened().is_mended = true;
        Ok(())
    }

    /// How far it is, and what is worth saying beside it.
    pub fn state(&self, progress: &dyn Progress) -> Result<(TierState, Vec<String>), SearchError> {
        let mut warnings = Vec::new();
        let told = self.mended(&mut self.state_of(), &mut warnings, |state, warnings| {
            self.told(state, progress, warnings)
        })?;
        Ok((told, warnings))
    }

    fn told(
        &self,
        state: &mut State,
        progress: &dyn Progress,
        warnings: &mut Vec<String>,
    ) -> Result<TierState, SearchError> {
        let mut told = TierState {
            space: self.space,
            folder: self.folder(),
            embedder: self.embedder.id().to_owned(),
            items: 0,
            refused: 0,
            complete: false,
            behind: 0,
            bytes: 0,
        };
        let Some(index) = self.open(warnings)? else { return Ok(told) };
        if self.space == Space::System {
            self.step(state, true, &Silent, warnings)?;
        }
        self.fill(state, progress, warnings)?;
        let view = index.view()?;
        let counts = view.counts()?;
        let step = Step { space: self.space, catalogue: &self.catalogue, index: &index, progress: &Silent };
        index.embedder().id().clone_into(&mut told.embedder);
        (told.items, told.refused, told.complete) = (counts.items, counts.refused, view.is_complete());
        told.behind = step.behind()? as u64;
        told.bytes = index.folder().map_or(0, size);
        Ok(told)
    }

    /// Holds it against its items and their texts.
    pub fn verify(&self, progress: &dyn Progress) -> Result<TierCheck, SearchError> {
        let mut faults = Vec::new();
        let check = self.mended(&mut self.state_of(), &mut faults, |state, faults| {
            self.compared(state, progress, faults)
        })?;
        // What was mended on the way was wrong too.
        faults.extend(check.faults);
        Ok(TierCheck { faults, ..check })
    }

    fn compared(
        &self,
        state: &mut State,
        progress: &dyn Progress,
        faults: &mut Vec<String>,
    ) -> Result<TierCheck, SearchError> {
        let mut check = TierCheck { space: self.space, documents: 0, faults: Vec::new() };
        let Some(index) = self.open(faults)? else { return Ok(check) };
        if self.space == Space::System {
            self.step(state, true, &Silent, faults)?;
        }
        self.fill(state, progress, faults)?;
        let total = index.view()?.len();
        let mut tick = |done: u64| progress.at(self.space, done, total);
        let own = index.check(&mut tick)?;
        progress.end();
        check.documents = own.documents;
        check.faults.extend(own.faults);
        let step = Step { space: self.space, catalogue: &self.catalogue, index: &index, progress: &Silent };
        match step.behind()? {
            0 => {}
            count => check.faults.push(format!("{count} items are not indexed as they are now")),
        }
        Ok(check)
    }
}

/// What is said of damage: nobody has to do anything about it.
fn built_again(damage: &SearchError) -> String {
    format!("{damage}; it is built again")
}

/// The bytes of a folder's files.
fn size(folder: &std::path::Path) -> u64 {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
}

/// The key under which a tool of an upstream server is indexed, and its group.
pub(super) const UPSTREAM: &str = "mcp";

/// A key for a tool of an upstream server.
pub(super) fn upstream_key(id: &str) -> String {
    format!("{UPSTREAM}:{id}")
}

/// What the integrity of a tool comes to as a stamp.
pub(super) fn upstream_stamp(integrity: &str) -> u64 {
    KeyHash::of(integrity).number()
}
