//! Items that a query calls by name: exactly, by its beginning or that of a word of it, or with a slip of the finger.

use std::cmp::Ordering;
use std::collections::HashMap;
use tantivy::query::FuzzyTermQuery;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, DocSet, SegmentReader, TERMINATED, Term};

use super::candidates::Place;
use super::select::Allowed;
use crate::error::SearchError;
use crate::index::View;
use crate::text::{flat, is_one_word, word_facet};

/// Longer texts are no names.
const LONGEST: usize = 80;
/// Shorter ones are a slip away from too much.
const SHORTEST_SLIP: usize = 3;
/// From this length on a name is as good as met with two slips.
const TWO_SLIPS: usize = 8;
/// As many names as one query can mean, nearly.
const MOST: usize = 64;
/// So many times what is wanted is enough, from however many segments.
const ENOUGH: usize = 4;

/// How a query calls an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Call {
    /// By its name, however it is written.
    Exact,
    /// By the beginning of its name.
    Beginning,
    /// By the beginning of a word of it.
    Word,
    /// With one slip.
    Slip,
    /// With two.
    Slips,
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

/// Whom a query calls. Of those whose names begin so there are up to `wanted` of a segment: as many as could be shown.
pub(super) fn named(
    tiers: &[&View],
    text: &str,
    allowed: &Allowed,
    wanted: usize,
) -> Result<Named, SearchError> {
    let mut named = Named::default();
    let name = flat(text);
    let length = name.chars().count();
    if name.is_empty() || length > LONGEST {
        return Ok(named);
    }
    let is_word = is_one_word(text);
    for (call, look) in LOOKS {
        let is_meant = match call {
            Call::Exact | Call::Beginning => true,
            // In what is more than one word each would be the beginning of much.
            Call::Word => is_word,
            Call::Slip => length >= SHORTEST_SLIP,
            // Looked for only where fewer do not help, and in what is one word like a name.
            Call::Slips => {
                let has_no_space = !text.trim().contains(char::is_whitespace);
                length >= TWO_SLIPS && has_no_space && named.0.values().all(|call| *call == Call::Word)
            }
        };
        if is_meant {
            for place in places(tiers, (&name, wanted.max(MOST)), allowed, look)? {
                named.note(place, call);
            }
        }
    }
    Ok(named)
}

/// The items of exactly this name, nearest tier first.
pub(super) fn exactly(tiers: &[&View], name: &str, allowed: &Allowed) -> Result<Vec<Place>, SearchError> {
    places(tiers, (name, MOST), allowed, exact)
}

/// What a way of looking finds in all tiers.
fn places(
    tiers: &[&View],
    (name, wanted): (&str, usize),
    allowed: &Allowed,
    look: Look,
) -> Result<Vec<Place>, SearchError> {
    let mut places = Vec::new();
    for (tier, view) in tiers.iter().enumerate() {
        for (segment, reader) in view.searcher.segment_readers().iter().enumerate() {
            let counts = |document| !reader.is_deleted(document) && allowed.counts(tier, segment, document);
            let mut found = Found { documents: Vec::new(), wanted, counts: &counts };
            look(view, reader, name, &mut found).map_err(|error| view.damaged(&error))?;
            places.extend(found.documents.into_iter().map(|document| Place { tier, segment, document }));
            if places.len() >= wanted.saturating_mul(ENOUGH) {
                return Ok(places);
            }
        }
    }
    Ok(places)
}

/// The order of two items by how they are called: whoever is not called comes last.
pub(super) fn order(a: Option<Call>, b: Option<Call>) -> Ordering {
    let rank = |call: Option<Call>| (call.is_none(), call);
    rank(a).cmp(&rank(b))
}

/// What was found in a segment, of what counts.
struct Found<'c> {
    documents: Vec<DocId>,
    /// No more of them.
    wanted: usize,
    counts: &'c dyn Fn(DocId) -> bool,
}

impl Found<'_> {
    fn is_full(&self) -> bool {
        self.documents.len() >= self.wanted
    }

    fn drain(&mut self, mut postings: impl DocSet) {
        while postings.doc() != TERMINATED && !self.is_full() {
            if (self.counts)(postings.doc()) {
                self.documents.push(postings.doc());
            }
            postings.advance();
        }
    }
}

type Look = fn(&View, &SegmentReader, &str, &mut Found<'_>) -> tantivy::Result<()>;

/// How names are looked for.
const LOOKS: [(Call, Look); 5] = [
    (Call::Exact, exact),
    (Call::Beginning, |view, reader, name, found| beginning(reader, view.fields.flat, name, found)),
    (Call::Slip, |view, reader, name, found| slipped(view, reader, (name, 1), found)),
    (Call::Word, |view, reader, name, found| beginning(reader, view.fields.facet, &word_facet(name), found)),
    (Call::Slips, |view, reader, name, found| slipped(view, reader, (name, 2), found)),
];

fn exact(view: &View, reader: &SegmentReader, name: &str, found: &mut Found<'_>) -> tantivy::Result<()> {
    let index = reader.inverted_index(view.fields.flat)?;
    let term = Term::from_field_text(view.fields.flat, name);
    if let Some(postings) = index.read_postings(&term, IndexRecordOption::Basic)? {
        found.drain(postings);
    }
    Ok(())
}

fn slipped(
    view: &View,
    reader: &SegmentReader,
    (name, slips): (&str, u8),
    found: &mut Found<'_>,
) -> tantivy::Result<()> {
    let index = reader.inverted_index(view.fields.flat)?;
    let query = FuzzyTermQuery::new(Term::from_field_text(view.fields.flat, name), slips, true);
    let mut stream = index.terms().search(query.automaton()?).into_stream()?;
    found.wanted = MOST;
    while stream.advance() && !found.is_full() {
        found.drain(index.read_postings_from_terminfo(stream.value(), IndexRecordOption::Basic)?);
    }
    Ok(())
}

/// What begins so in a field: one stretch of its terms, which are in order.
fn beginning(
    reader: &SegmentReader,
    field: Field,
    start: &str,
    found: &mut Found<'_>,
) -> tantivy::Result<()> {
    let index = reader.inverted_index(field)?;
    let mut stream = index.terms().range().ge(start.as_bytes()).into_stream()?;
    while stream.advance() && stream.key().starts_with(start.as_bytes()) && !found.is_full() {
        found.drain(index.read_postings_from_terminfo(stream.value(), IndexRecordOption::Basic)?);
    }
    Ok(())
}
