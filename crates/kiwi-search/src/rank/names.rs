//! Items that a query calls by name: exactly, by its beginning or that of a word of it, or with a slip of the finger.

use std::cmp::Ordering;
use std::collections::HashMap;
use tantivy::query::FuzzyTermQuery;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{BitSet, DocId, DocSet, SegmentReader, TERMINATED, Term};

use super::candidates::Place;
use super::select::Allowed;
use crate::error::SearchError;
use crate::index::View;
use crate::text::{Words, flat, is_one_word, readings, run_facet, word_facet};

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
    /// By the beginning of its name, word by word.
    Beginning,
    /// By a word of it.
    Whole,
    /// By the beginning of a word of it.
    Word,
    /// With one slip.
    Slip,
    /// By the beginning of its name, without the break between two words.
    RunOn,
    /// With two.
    Slips,
}

impl Call {
    /// What comes first. A word that is meant is no worse than a beginning.
    const fn rank(self) -> u8 {
        match self {
            Self::Exact => 0,
            Self::Beginning | Self::Whole => 1,
            Self::Word => 2,
            Self::Slip | Self::RunOn => 3,
            Self::Slips => 4,
        }
    }
}

/// What a query is as a name.
struct Name {
    flat: String,
    /// Its words, as they can be told apart.
    readings: Vec<Vec<String>>,
}

impl Name {
    fn of(text: &str) -> Self {
        Self { flat: flat(text), readings: readings(text) }
    }

    /// Whether it is one word as it stands, and not a form of another: `files` is `file`, and not the beginning of `file_s…`.
    fn is_plain_word(&self, text: &str) -> bool {
        is_one_word(text) && self.readings.len() == 1 && Words::new().of(&self.flat) == [self.flat.as_str()]
    }
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
    let name = Name::of(text);
    let length = name.flat.chars().count();
    if name.flat.is_empty() || length > LONGEST {
        return Ok(named);
    }
    let is_word = is_one_word(text);
    for (call, look) in LOOKS {
        let is_meant = match call {
            Call::Exact | Call::Beginning => true,
            // In what is more than one word each would be the beginning of much.
            Call::Whole | Call::Word => is_word,
            Call::Slip => length >= SHORTEST_SLIP,
            // Looked for only where the break that is not written is all that is missing.
            Call::RunOn => {
                let is_open = named.0.values().all(|call| *call == Call::Slip);
                length >= SHORTEST_SLIP && is_open && name.is_plain_word(text)
            }
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
    places(tiers, (&Name::of(name), MOST), allowed, exact)
}

/// What a way of looking finds in all tiers.
fn places(
    tiers: &[&View],
    (name, wanted): (&Name, usize),
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
    let rank = |call: Option<Call>| call.map_or(u8::MAX, Call::rank);
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

type Look = fn(&View, &SegmentReader, &Name, &mut Found<'_>) -> tantivy::Result<()>;

/// How names are looked for.
const LOOKS: [(Call, Look); 7] = [
    (Call::Exact, exact),
    (Call::Beginning, begun),
    (Call::Whole, |view, reader, name, found| {
        whole(reader, view.fields.facet, &run_facet(&name.flat), found)
    }),
    (Call::Slip, |view, reader, name, found| slipped(view, reader, (name, 1), found)),
    (Call::Word, |view, reader, name, found| {
        beginning(reader, view.fields.facet, &word_facet(&name.flat), found)
    }),
    (Call::RunOn, |view, reader, name, found| beginning(reader, view.fields.flat, &name.flat, found)),
    (Call::Slips, |view, reader, name, found| slipped(view, reader, (name, 2), found)),
];

fn exact(view: &View, reader: &SegmentReader, name: &Name, found: &mut Found<'_>) -> tantivy::Result<()> {
    whole(reader, view.fields.flat, &name.flat, found)
}

/// What has a term in a field.
fn whole(reader: &SegmentReader, field: Field, text: &str, found: &mut Found<'_>) -> tantivy::Result<()> {
    let term = Term::from_field_text(field, text);
    if let Some(postings) = reader.inverted_index(field)?.read_postings(&term, IndexRecordOption::Basic)? {
        found.drain(postings);
    }
    Ok(())
}

fn slipped(
    view: &View,
    reader: &SegmentReader,
    (name, slips): (&Name, u8),
    found: &mut Found<'_>,
) -> tantivy::Result<()> {
    let index = reader.inverted_index(view.fields.flat)?;
    let query = FuzzyTermQuery::new(Term::from_field_text(view.fields.flat, &name.flat), slips, true);
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

/// What begins so word by word: `issues` is no beginning of `issue_state`, although the same letters follow each other there.
fn begun(view: &View, reader: &SegmentReader, name: &Name, found: &mut Found<'_>) -> tantivy::Result<()> {
    if !is_begun(reader, view.fields.flat, &name.flat)? {
        return Ok(());
    }
    let facet = view.fields.facet;
    let worded: Vec<Vec<BitSet>> =
        name.readings.iter().map(|words| worded(reader, facet, words)).collect::<tantivy::Result<_>>()?;
    let has_words =
        |document| worded.iter().any(|sets| sets.iter().all(|documents| documents.contains(document)));
    let before = found.counts;
    let counts = |document| has_words(document) && before(document);
    let mut own = Found { documents: Vec::new(), wanted: found.wanted, counts: &counts };
    beginning(reader, view.fields.flat, &name.flat, &mut own)?;
    found.documents.append(&mut own.documents);
    Ok(())
}

/// Whether anything begins so in a field.
fn is_begun(reader: &SegmentReader, field: Field, start: &str) -> tantivy::Result<bool> {
    let index = reader.inverted_index(field)?;
    let mut stream = index.terms().range().ge(start.as_bytes()).into_stream()?;
    Ok(stream.advance() && stream.key().starts_with(start.as_bytes()))
}

/// For each word of a query, what has it in its names; of the last one the beginning is enough.
fn worded(reader: &SegmentReader, facet: Field, words: &[String]) -> tantivy::Result<Vec<BitSet>> {
    let set = |(number, word): (usize, &String)| {
        let everything = |_| true;
        let mut found = Found { documents: Vec::new(), wanted: usize::MAX, counts: &everything };
        if number + 1 < words.len() {
            whole(reader, facet, &run_facet(word), &mut found)?;
        } else {
            beginning(reader, facet, &word_facet(word), &mut found)?;
        }
        let mut documents = BitSet::with_max_value(reader.max_doc());
        for document in found.documents {
            documents.insert(document);
        }
        Ok(documents)
    };
    words.iter().enumerate().map(set).collect()
}
