//! Finding items: the one search of every face.
//!
//! Each space on disk has an index of its own beside its items (`tier`), kept in step by looking at what changed (`step`).
//! Whatever is found is looked at once more before it is shown (`sight`): it must still be what was indexed, it must be
//! what a call would use, and the caller must be allowed to call it. So an index that lags behind can miss something for a
//! moment, but never shows what may not be seen.

mod document;
mod embedder;
mod kept;
mod offered;
mod sight;
mod step;
mod tier;
mod usage;

pub use kept::Keeping;
pub use step::{Hurried, Progress};
pub use tier::{TierCheck, TierState};

use kiwi_model::{ErrorKind, Fault, Space};
use kiwi_search::{Embedder, Filter, Hit, Item, Kind, Mode, Prospect, Query, SearchError, View, contained};
use kiwi_space::{Config, Transport};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::admission::Admission;
use crate::catalogue::Catalogue;
use crate::host::Host;
use crate::kernel::Kernel;
use crate::request::Session;
use sight::Sight;
use step::Silent;
use tier::Tier;
use usage::Usage;

/// Nearest first, as a call looks.
const ORDER: [Space; 3] = [Space::Project, Space::User, Space::System];
/// Hits that anybody reads.
pub(crate) const MOST_HITS: usize = 1000;
/// As much as is kept to be said.
const MOST_UNTOLD: usize = 16;

/// What is looked for.
#[derive(Debug, Clone)]
pub struct Search {
    /// In whatever words; nothing means what was used lately.
    pub text: String,
    /// Which items count.
    pub filter: Filter,
    /// Only there; by default everywhere.
    pub source: Option<Source>,
    /// How many are wanted.
    pub limit: usize,
    /// Which legs are asked.
    pub mode: Mode,
}

impl Search {
    /// The ten that fit best.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), filter: Filter::default(), source: None, limit: 10, mode: Mode::default() }
    }
}

/// Where an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Here.
    Space(Space),
    /// At the registry: it can be installed.
    Registry,
}

impl Source {
    /// The spelling used in output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Space(space) => space.as_str(),
            Self::Registry => "registry",
        }
    }
}

/// Which spaces a search looks into.
#[derive(Clone, Copy)]
enum Here {
    All,
    One(Space),
    Nowhere,
}

impl Here {
    fn has(self, space: Space) -> bool {
        match self {
            Self::All => true,
            Self::One(one) => one == space,
            Self::Nowhere => false,
        }
    }
}

impl From<Option<Space>> for Here {
    fn from(space: Option<Space>) -> Self {
        space.map_or(Self::All, Self::One)
    }
}

impl Search {
    fn here(&self) -> Here {
        match self.source {
            None => Here::All,
            Some(Source::Space(space)) => Here::One(space),
            Some(Source::Registry) => Here::Nowhere,
        }
    }
}

/// Who looks for it.
#[derive(Debug, Clone)]
pub struct Asker {
    /// The way they came in.
    pub transport: Transport,
    /// A profile that allows less, where they ask for it.
    pub narrower: Option<String>,
    /// What their calls count in.
    pub session: Session,
}

/// What was found.
#[derive(Debug, Clone)]
pub struct Found {
    /// Best first.
    pub hits: Vec<FoundItem>,
    /// How long it took, what had to be indexed first aside.
    pub took: Duration,
    /// Worth saying.
    pub warnings: Vec<String>,
}

/// What there is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Overview {
    /// Tools to call.
    pub tools: u64,
    /// Tools of upstream servers.
    pub upstream: u64,
    /// Directives.
    pub directives: u64,
    /// Knowledge entries.
    pub knowledge: u64,
    /// Some tools by name: those that were used lately, then those of the nearest space.
    pub names: Vec<String>,
}

/// An item that was found.
#[derive(Debug, Clone)]
pub struct FoundItem {
    /// Where it is.
    pub source: Source,
    /// The item, what was said for it, and why it was found.
    pub hit: Hit,
}

/// The indexes of all spaces, made when they are first asked for: most commands look for nothing.
pub(crate) struct Finder {
    catalogue: Arc<Catalogue>,
    admission: Arc<Admission>,
    host: Arc<Host>,
    config: Arc<Config>,
    made: OnceLock<Result<Made, Fault>>,
    is_kept: AtomicBool,
    /// What was worth saying while nobody searched.
    untold: Mutex<Vec<String>>,
    usage: Usage,
}

struct Made {
    embedder: Arc<dyn Embedder>,
    tiers: Vec<Tier>,
}

impl Finder {
    pub fn new(
        catalogue: &Catalogue,
        admission: &Arc<Admission>,
        host: &Arc<Host>,
        config: &Arc<Config>,
    ) -> Self {
        Self {
            catalogue: Arc::new(catalogue.clone()),
            admission: Arc::clone(admission),
            host: Arc::clone(host),
            config: Arc::clone(config),
            made: OnceLock::new(),
            is_kept: AtomicBool::new(false),
            untold: Mutex::default(),
            usage: Usage::new(catalogue.spaces.ai(Space::User), config.search.usage),
        }
    }

    fn made(&self) -> Result<&Made, Fault> {
        let make = || {
            let embedder = embedder::embedder(&self.config.search, &self.host)?;
            let spaces = &self.catalogue.spaces;
            let is_there = |space: &Space| *space == Space::System || spaces.ai(*space).is_some();
            let tier = |space| Tier::new(space, Arc::clone(&self.catalogue), Arc::clone(&embedder));
            Ok(Made { tiers: ORDER.into_iter().filter(is_there).map(tier).collect(), embedder })
        };
        self.made.get_or_init(make).as_ref().map_err(Clone::clone)
    }

    fn tiers(&self, here: impl Into<Here>) -> Result<Vec<&Tier>, Fault> {
        let here = here.into();
        let is_meant = |tier: &&Tier| here.has(tier.space);
        let tiers: Vec<&Tier> = self.made()?.tiers.iter().filter(is_meant).collect();
        if self.is_kept.load(Ordering::Acquire) {
            for tier in &tiers {
                tier.keep();
            }
        }
        Ok(tiers)
    }

    /// Keeps what is worth saying for whoever searches next.
    fn tell_later(&self, warnings: Vec<String>) {
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        for warning in warnings {
            if untold.len() < MOST_UNTOLD && !untold.contains(&warning) {
                untold.push(warning);
            }
        }
    }

    fn untold(&self) -> Vec<String> {
        std::mem::take(&mut *self.untold.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Brings every index up to date as far as that takes no time worth mentioning; `patient` waits for all of it.
    fn catch_up(
        &self,
        here: impl Into<Here>,
        patient: bool,
        progress: &dyn Progress,
    ) -> Result<Vec<String>, Fault> {
        let tiers = self.tiers(here)?;
        let all = |tiers: &[&Tier]| -> Vec<String> {
            tiers.iter().flat_map(|tier| tier.catch_up(patient, progress)).collect()
        };
        match tiers.split_last() {
            // The first time, the system is indexed in memory, and nobody else waits for that.
            Some((system, others)) if !others.is_empty() && !system.is_open() => {
                std::thread::scope(|scope| {
                    let aside = scope.spawn(|| system.catch_up(patient, &Silent));
                    let mut warnings = all(others);
                    warnings.extend(aside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
                    Ok(warnings)
                })
            }
            _ => Ok(all(&tiers)),
        }
    }

    /// Reads the indexes. Whatever shows to be wrong with them, they can be made again, and it is done once more.
    fn reading<T>(
        &self,
        here: impl Into<Here> + Copy,
        progress: &dyn Progress,
        warnings: &mut Vec<String>,
        read: impl Fn() -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let unreadable = || Fault::new(ErrorKind::Internal, "the search index cannot be read");
        let once = || contained(&read).unwrap_or_else(|| Err(unreadable()));
        match once() {
            // Anything else, such as an embedder that does not answer, is no damage.
            Err(problem) if problem.kind == ErrorKind::Internal => {
                warnings.push(format!("{}; the search index is built again", problem.message));
                for tier in self.tiers(here)? {
                    warnings.extend(tier.rebuild(progress).map_err(|error| fault(&error))?);
                }
                once()
            }
            done => done,
        }
    }

    fn search(
        &self,
        search: &Search,
        offered: Option<&Arc<View>>,
        sight: &Sight<'_>,
    ) -> Result<Vec<FoundItem>, Fault> {
        let mut views: Vec<(Source, Arc<View>)> = Vec::new();
        for tier in self.tiers(search.here())? {
            if let Some(view) = tier.view()? {
                views.push((Source::Space(tier.space), view));
            }
        }
        views.extend(offered.map(|view| (Source::Registry, Arc::clone(view))));
        let plain: Vec<&View> = views.iter().map(|(_, view)| view.as_ref()).collect();
        let source_of = |tier: usize| views.get(tier).map_or(Source::Registry, |(source, _)| *source);
        let may_see = |it: &Prospect<'_>| match source_of(it.tier) {
            Source::Space(space) => sight.shows(space, it),
            Source::Registry => sight.offers(it.item),
        };
        let limit = search.limit.min(MOST_HITS);
        let text = search.text.trim();
        let hits = if text.is_empty() {
            self.usage.lately(&plain, &search.filter, limit, &may_see)
        } else {
            let usage = |item: &Item| self.usage.of(item);
            let query = Query {
                text,
                filter: &search.filter,
                limit,
                mode: search.mode,
                may_see: &may_see,
                usage: &usage,
            };
            kiwi_search::search(&plain, &query)
        };
        let hits = hits.map_err(|error| fault(&error))?;
        Ok(hits.into_iter().map(|hit| FoundItem { source: source_of(hit.tier), hit }).collect())
    }
}

impl Finder {
    fn overview(&self, names: usize) -> Result<Overview, Fault> {
        let mut views = Vec::new();
        for tier in self.tiers(None)? {
            views.extend(tier.view()?);
        }
        let views: Vec<&View> = views.iter().map(AsRef::as_ref).collect();
        let count = |kind: Kind| views.iter().map(|view| view.count(kind)).sum();
        let filter = Filter { kinds: vec![Kind::Tool, Kind::Mcp], ..Filter::default() };
        let first = self.usage.lately(&views, &filter, names, &|_| true);
        let first = first.map_err(|error| fault(&error))?;
        Ok(Overview {
            tools: count(Kind::Tool),
            upstream: count(Kind::Mcp),
            directives: count(Kind::Directive),
            knowledge: count(Kind::Knowledge),
            names: first.into_iter().map(|hit| hit.item.id).collect(),
        })
    }
}

impl Kernel {
    /// Finds items that whoever asks may see. Blocks: for a thread that may wait.
    pub fn search(&self, search: &Search, asker: &Asker, progress: &dyn Progress) -> Result<Found, Fault> {
        let profile = self.profile_of(asker.transport, asker.narrower.as_deref())?;
        let finder = &self.finder;
        let mut warnings = self.notices.clone();
        warnings.extend(finder.catch_up(search.here(), progress.is_patient(), progress)?);
        for warning in finder.untold() {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        let begun = Instant::now();
        let offered = self.offered(search, &mut warnings)?;
        let sight = Sight::new(&finder.catalogue, &finder.admission, &profile, search.here())?;
        let find = || finder.search(search, offered.as_ref(), &sight);
        let hits = finder.reading(search.here(), progress, &mut warnings, find)?;
        if !search.text.trim().is_empty() {
            finder.usage.shown(asker.session, hits.iter().map(|found| &found.hit.item));
        }
        Ok(Found { hits, took: begun.elapsed(), warnings })
    }

    /// Notes that a tool was used, if it was found by a search before.
    pub(crate) fn note_use(&self, session: Session, id: &str) {
        self.finder.usage.used(session, id);
    }

    /// What there is in all, for whoever has to describe it.
    pub fn overview(&self, names: usize) -> Result<Overview, Fault> {
        let finder = &self.finder;
        finder.catch_up(None, false, &Hurried)?;
        finder.reading(None, &Hurried, &mut Vec::new(), || finder.overview(names))
    }

    /// What there is of an index for a space, and what is worth saying beside it.
    pub fn index_states(
        &self,
        space: Option<Space>,
        progress: &dyn Progress,
    ) -> Result<(Vec<TierState>, Vec<String>), Fault> {
        let mut warnings = Vec::new();
        let tiers = self.finder.tiers(space)?.into_iter();
        let state = |tier: &Tier| {
            let (state, own) = tier.state(progress).map_err(|error| fault(&error))?;
            warnings.extend(own);
            Ok(state)
        };
        let states = tiers.map(state).collect::<Result<_, Fault>>()?;
        Ok((states, warnings))
    }

    /// Brings the indexes up to date, all of it; `anew` throws away what there is.
    pub fn index_build(
        &self,
        space: Option<Space>,
        anew: bool,
        progress: &dyn Progress,
    ) -> Result<Vec<String>, Fault> {
        let mut warnings = Vec::new();
        for tier in self.finder.tiers(space)? {
            if anew {
                warnings.extend(tier.rebuild(progress).map_err(|error| fault(&error))?);
            } else {
                warnings.extend(tier.build(progress).map_err(|error| fault(&error))?);
            }
        }
        Ok(warnings)
    }

    /// Holds the indexes against their items and their texts.
    pub fn index_verify(
        &self,
        space: Option<Space>,
        progress: &dyn Progress,
    ) -> Result<Vec<TierCheck>, Fault> {
        let tiers = self.finder.tiers(space)?.into_iter();
        tiers.map(|tier| tier.verify(progress).map_err(|error| fault(&error))).collect()
    }

    /// The embedder in force.
    pub fn embedder(&self) -> Result<&str, Fault> {
        self.finder.made().map(|made| made.embedder.id())
    }
}

/// As faces show it.
fn fault(error: &SearchError) -> Fault {
    let hint = match error {
        SearchError::Unusable { .. } => "see that the folder can be written, or remove it",
        SearchError::Damaged { .. } => "`kiwi index build --anew` makes it again",
        SearchError::Embed(_) => "see `search.embedder` in the user's configuration",
    };
    let kind = match error {
        SearchError::Embed(_) => ErrorKind::UpstreamUnavailable,
        _ => ErrorKind::Internal,
    };
    Fault::new(kind, error.to_string()).with_hint(hint)
}
