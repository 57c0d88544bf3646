//! Items that a query calls by name: exactly, by its beginning, or with a slip of the finger.

use std::cmp::Ordering;
use std::collections::HashMap;
use tantivy::query::FuzzyTermQuery;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, SegmentReader, TERMINATED, Term};

use super::Ranked;
use super::candidates::Place;
use super::select::Allowed;
use crate::error::SearchError;
use crate::index::View;
use crate::text::flat;

/// Longer texts are no names.
const LONGEST: usize = 80;
/// Shorter ones are the beginning of too much, or a slip away from it.
const SHORTEST_BEGINNING: usize = 3;
const SHORTEST_SLIP: usize = 3;
/// From this length on a name is as good as met with two slips.
const TWO_SLIPS: usize = 8;
/// As many names as one query can mean.
const MOST: usize = 64;
/// Items whose names begin with the query and are kept among those that are shown.
const KEPT_BEGINNINGS: usize = 3;

/// How a query calls an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Call {
    /// By its name, however it is written.
    Exact,
    /// With one slip.
    Slip,
    /// With two.
    Slips,
    /// By the beginning of its name.
    Beginning,
}

/// The items that are called.
#[derive(Default)]
pub(super) struct Named(HashMap<Place, Call>);

impl Named {
    pub fn call(&self, place: Place) -> Option<Call> {
        self.0.get(&place).copied()
    }

    pub fn places(&self) -> impl Iterator<Item = Place> {
        self.0.keys().copied()
    }

    fn note(&mut self, place: Place, call: Call) {
        let known = self.0.entry(place).or_insert(call);
        *known = (*known).min(call);
    }
}

/// Whom a query calls.
pub(super) fn named(tiers: &[&View], text: &str, allowed: &Allowed) -> Result<Named, SearchError> {
    let mut named = Named::default();
    let name = flat(text);
    let length = name.chars().count();
    if name.is_empty() || length > LONGEST {
        return Ok(named);
    }
    for (call, _, look) in LOOKS.into_iter().filter(|(_, least, _)| length >= *least) {
        // Two slips are looked for only where fewer do not help, and in what is one word like a name.
        let is_word = !text.trim().contains(char::is_whitespace);
        if call == Call::Slips && (!is_word || named.0.values().any(|call| *call < Call::Slips)) {
            continue;
        }
        for place in places(tiers, &name, allowed, look)? {
            named.note(place, call);
        }
    }
    Ok(named)
}

/// The items of exactly this name, nearest tier first.
pub(super) fn exactly(tiers: &[&View], name: &str, allowed: &Allowed) -> Result<Vec<Place>, SearchError> {
    places(tiers, name, allowed, exact)
}

/// What a way of looking finds in all tiers.
fn places(tiers: &[&View], name: &str, allowed: &Allowed, look: Look) -> Result<Vec<Place>, SearchError> {
    let mut places = Vec::new();
    for (tier, view) in tiers.iter().enumerate() {
        for (segment, reader) in view.searcher.segment_readers().iter().enumerate() {
            for document in look(view, reader, name).map_err(|error| view.damaged(&error))? {
                if !reader.is_deleted(document) && allowed.counts(tier, segment, document) {
                    places.push(Place { tier, segment, document });
                }
            }
        }
    }
    Ok(places)
}

/// The order of two items by how they are called. The beginning of a name is no call by name: it only keeps its place.
pub(super) fn order(a: Option<Call>, b: Option<Call>) -> Ordering {
    let rank = |call: Option<Call>| match call {
        Some(Call::Exact) => 0,
        Some(Call::Slip) => 1,
        Some(Call::Slips) => 2,
        Some(Call::Beginning) | None => 3,
    };
    rank(a).cmp(&rank(b))
}

/// Sees to it that the best of those whose names begin with the query are among the first `limit`.
pub(super) fn keep_beginnings(ranked: &mut Vec<Ranked>, limit: usize) {
    let kept = KEPT_BEGINNINGS.min(limit);
    let is_beginning = |it: &Ranked| it.call == Some(Call::Beginning);
    let mut missing = kept.saturating_sub(ranked.iter().take(limit).filter(|it| is_beginning(it)).count());
    let mut to = limit.saturating_sub(missing);
    let mut from = limit;
    while missing > 0 && from < ranked.len() {
        if ranked.get(from).is_some_and(is_beginning) {
            let item = ranked.remove(from);
            ranked.insert(to, item);
            (to, missing) = (to + 1, missing - 1);
        }
        from += 1;
    }
}

type Look = fn(&View, &SegmentReader, &str) -> tantivy::Result<Vec<DocId>>;

/// How names are looked for, and from which length on.
const LOOKS: [(Call, usize, Look); 4] = [
    (Call::Exact, 1, exact),
    (Call::Slip, SHORTEST_SLIP, |view, reader, name| slipped(view, reader, name, 1)),
    (Call::Slips, TWO_SLIPS, |view, reader, name| slipped(view, reader, name, 2)),
    (Call::Beginning, SHORTEST_BEGINNING, beginning),
];

fn exact(view: &View, reader: &SegmentReader, name: &str) -> tantivy::Result<Vec<DocId>> {
    let index = reader.inverted_index(view.fields.flat)?;
    let term = Term::from_field_text(view.fields.flat, name);
    let mut found = Vec::new();
    if let Some(postings) = index.read_postings(&term, IndexRecordOption::Basic)? {
        drain(postings, &mut found);
    }
    Ok(found)
}

fn slipped(view: &View, reader: &SegmentReader, name: &str, slips: u8) -> tantivy::Result<Vec<DocId>> {
    let index = reader.inverted_index(view.fields.flat)?;
    let query = FuzzyTermQuery::new(Term::from_field_text(view.fields.flat, name), slips, true);
    let mut stream = index.terms().search(query.automaton()?).into_stream()?;
    let mut found = Vec::new();
    while stream.advance() && found.len() < MOST {
        drain(index.read_postings_from_terminfo(stream.value(), IndexRecordOption::Basic)?, &mut found);
    }
    Ok(found)
}

fn beginning(view: &View, reader: &SegmentReader, name: &str) -> tantivy::Result<Vec<DocId>> {
    let index = reader.inverted_index(view.fields.flat)?;
    let mut stream = index.terms().range().ge(name.as_bytes()).into_stream()?;
    let mut found = Vec::new();
    while stream.advance() && stream.key().starts_with(name.as_bytes()) && found.len() < MOST {
        drain(index.read_postings_from_terminfo(stream.value(), IndexRecordOption::Basic)?, &mut found);
    }
    Ok(found)
}

fn drain(mut postings: impl DocSet, found: &mut Vec<DocId>) {
    while postings.doc() != TERMINATED && found.len() < MOST {
        found.push(postings.doc());
        postings.advance();
    }
}
