//! One list out of both legs.
//!
//! Each leg brings its best documents; what both say of every one of them is added up (`fuse`). Names come first: who asks
//! for a thing by its name is shown it, whatever the legs say (`names`).

mod asked;
mod candidates;
mod dot;
mod fuse;
mod late;
mod legs;
mod list;
mod names;
mod parts;
mod select;
mod why;
mod words;

pub use fuse::Weighed;
pub use list::list;
pub use why::summary;

use std::collections::HashSet;

use crate::document::{Item, Kind};
use crate::error::SearchError;
use crate::index::View;
use asked::Asked;
use candidates::{Place, Pool};
use names::Call;
use select::Allowed;

/// Candidates that each leg brings at first.
const POOL: usize = 100;
/// How far below the last that is shown an item may be, for its use to lift it among them.
const NUDGED: usize = 5;
/// A query is read so far.
const MOST_CHARACTERS: usize = 4096;

/// Which legs are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Words alone.
    Text,
    /// Vectors alone.
    Vector,
    /// Both.
    #[default]
    Hybrid,
}

/// Which items count. What is empty does not restrict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// One of these kinds.
    pub kinds: Vec<Kind>,
    /// In this category or one below it.
    pub category: Option<String>,
    /// With all of these tags.
    pub tags: Vec<String>,
    /// Of this type of tool.
    pub tool_type: Option<String>,
}

/// What is asked.
pub struct Query<'q> {
    /// In whatever words.
    pub text: &'q str,
    /// Which items count.
    pub filter: &'q Filter,
    /// How many are wanted.
    pub limit: usize,
    /// Which legs are asked.
    pub mode: Mode,
    /// Whether an item may be shown to whoever asks. Asked only of those that would be.
    pub may_see: &'q dyn Fn(&Prospect<'_>) -> bool,
    /// How much an item's use speaks for it, from 0 to 1.
    pub usage: &'q dyn Fn(&Item) -> f32,
}

/// An item that would be shown.
#[derive(Debug, Clone, Copy)]
pub struct Prospect<'i> {
    /// The place of its tier among those that were asked.
    pub tier: usize,
    /// Its key in that tier.
    pub key: &'i str,
    /// The state in which it was indexed.
    pub stamp: u64,
    /// What it is.
    pub item: &'i Item,
}

/// An item that was found.
#[derive(Debug, Clone)]
pub struct Hit {
    /// The place of its tier among those that were asked.
    pub tier: usize,
    /// Its key in that tier.
    pub key: String,
    /// What it is.
    pub item: Item,
    /// From 0 to 1: how good it is beside the best; 1 is a name that was asked for.
    pub score: f32,
    /// Why it was found, on one line.
    pub why: String,
    /// What was said for it.
    pub weighed: Weighed,
}

/// Finds items in some tiers. Of two items of one name and family the one of the earlier tier is shown.
pub fn search(tiers: &[&View], query: &Query<'_>) -> Result<Vec<Hit>, SearchError> {
    let text: String = query.text.chars().take(MOST_CHARACTERS).collect();
    let asked = Asked::new(tiers, text, query.mode)?;
    let allowed = Allowed::of(tiers, query.filter)?;
    let total: u64 = tiers.iter().map(|view| view.len()).sum();
    let mut pool = POOL.max(query.limit * 4);
    loop {
        let (candidates, named) = candidates::gather(tiers, &asked, &allowed, (query.mode, &Pool::of(pool)))?;
        let weighed = fuse::weighed(&candidates, &asked, query.mode);
        let ranked = candidates.iter().zip(weighed).filter_map(|(candidate, weighed)| {
            let call = named.call(candidate.place);
            let weighed = weighed.or(call.map(|_| Weighed::default()))?;
            Some(Ranked { place: candidate.place, call, weighed })
        });
        let hits = shown(tiers, query, &asked, ranked.collect())?;
        // Where much may not be seen, more is fetched, until there is enough or nothing is left.
        let is_all = u64::try_from(pool).is_ok_and(|pool| pool >= total) || candidates.len() < pool;
        if hits.len() >= query.limit || is_all {
            return Ok(hits);
        }
        pool *= 8;
    }
}

/// An item as whoever judges it is told of it.
fn prospect<'i>(tiers: &[&View], place: Place, key: &'i str, item: &'i Item) -> Option<Prospect<'i>> {
    let stamp = tiers.get(place.tier)?.stamp(place.address())?;
    Some(Prospect { tier: place.tier, key, stamp, item })
}

/// A candidate with its place in the list.
struct Ranked {
    place: Place,
    call: Option<Call>,
    weighed: Weighed,
}

impl Ranked {
    /// What comes first: names, then what more speaks for, then the earlier tier.
    fn order(a: &Self, b: &Self) -> std::cmp::Ordering {
        names::order(a.call, b.call)
            .then_with(|| b.weighed.total.total_cmp(&a.weighed.total))
            .then_with(|| a.place.cmp(&b.place))
    }
}

/// The best of those that may be seen, names first.
fn shown(
    tiers: &[&View],
    query: &Query<'_>,
    asked: &Asked,
    mut ranked: Vec<Ranked>,
) -> Result<Vec<Hit>, SearchError> {
    ranked.sort_by(Ranked::order);
    let mut ranked = ranked.into_iter();
    let stored = |mut ranked: Ranked| {
        let view = tiers.get(ranked.place.tier)?;
        let (key, item) = match view.stored(ranked.place.address()) {
            Ok((key, item)) => (key, item?),
            Err(damage) => return Some(Err(damage)),
        };
        ranked.weighed = ranked.weighed.used((query.usage)(&item));
        Some(Ok((ranked, key, item)))
    };
    // Use is a nudge: it moves what is near the top already. Only then is anything looked at that takes time.
    let near_the_top = query.limit.saturating_add(NUDGED);
    let first = ranked.by_ref().take(near_the_top).filter_map(stored).collect::<Result<Vec<_>, _>>();
    let mut first = first?;
    first.sort_by(|a, b| Ranked::order(&a.0, &b.0));
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for prospect_of in first.into_iter().map(Ok).chain(ranked.filter_map(stored)) {
        if found.len() >= query.limit {
            break;
        }
        let (ranked, key, item) = prospect_of?;
        let name = (item.kind.family(), item.id.clone());
        if !seen.contains(&name)
            && prospect(tiers, ranked.place, &key, &item).is_some_and(|it| (query.may_see)(&it))
        {
            seen.insert(name);
            found.push((ranked, key, item));
        }
    }
    found.sort_by(|a, b| Ranked::order(&a.0, &b.0));
    let scores = scores(found.iter().map(|(ranked, _, _)| ranked));
    let hit = |((ranked, key, item), score): ((Ranked, String, Item), f32)| {
        let Ranked { place, call, weighed } = ranked;
        let why = why::why(&item, &asked.words, call, &weighed);
        Hit { tier: place.tier, key, item, score, why, weighed }
    };
    Ok(found.into_iter().zip(scores).map(hit).collect())
}

/// How good each is beside the best. Who is called by a name is no worse than whoever stands behind.
fn scores<'r>(found: impl DoubleEndedIterator<Item = &'r Ranked> + Clone) -> Vec<f32> {
    let best = found.clone().map(|ranked| ranked.weighed.total).fold(f32::MIN, f32::max);
    let mut least = 0.0_f32;
    let score = |ranked: &Ranked| {
        let own = match ranked.call {
            Some(Call::Exact) => 1.0,
            _ => ranked.weighed.beside(best).min(0.99),
        };
        least = least.max(own);
        least
    };
    let mut scores: Vec<f32> = found.rev().map(score).collect();
    scores.reverse();
    scores
}

#[cfg(test)]
mod tests;
