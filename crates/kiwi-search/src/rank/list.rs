//! Items without a question: some by name, then whatever there is.

use std::collections::HashSet;

use super::candidates::Place;
use super::names::exactly;
use super::select::Allowed;
use super::{Filter, Hit, Prospect, Weighed, prospect};
use crate::document::Item;
use crate::error::SearchError;
use crate::index::View;
use crate::text::flat;

/// The items of these names, in their order, then others as they come, nearest tier first.
pub fn list(
    tiers: &[&View],
    names: &[&str],
    filter: &Filter,
    limit: usize,
    may_see: &dyn Fn(&Prospect<'_>) -> bool,
) -> Result<Vec<Hit>, SearchError> {
    let allowed = Allowed::of(tiers, filter)?;
    let mut hits = Vec::new();
    let mut seen = HashSet::new();
    let mut take = |place: Place, why: &str, is_meant: &dyn Fn(&Item) -> bool| {
        let Some(view) = tiers.get(place.tier) else { return Ok(hits.len()) };
        let (key, Some(item)) = view.stored(place.address())? else { return Ok(hits.len()) };
        if is_meant(&item)
            && !seen.contains(&(item.kind.family(), item.id.clone()))
            && prospect(tiers, place, &key, &item).is_some_and(|it| may_see(&it))
        {
            seen.insert((item.kind.family(), item.id.clone()));
            let weighed = Weighed::default();
            hits.push(Hit { tier: place.tier, key, item, score: 0.0, why: why.to_owned(), weighed });
        }
        Ok::<_, SearchError>(hits.len())
    };
    for name in names {
        for place in exactly(tiers, &flat(name), &allowed)? {
            if take(place, "used lately", &|item| item.id == *name)? >= limit {
                return Ok(hits);
            }
        }
    }
    for (tier, view) in tiers.iter().enumerate() {
        for (segment, reader) in view.searcher.segment_readers().iter().enumerate() {
            for document in reader.doc_ids_alive().filter(|it| allowed.counts(tier, segment, *it)) {
                if take(Place { tier, segment, document }, "everything was asked for", &|_| true)? >= limit {
                    return Ok(hits);
                }
            }
        }
    }
    Ok(hits)
}
