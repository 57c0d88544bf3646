//! What either leg brought, and what speaks for each of them.

use tantivy::postings::Postings as _;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, DocId, DocSet as _, Term};

use super::asked::Asked;
use super::dot::dot;
use super::names::{self, Named};
use super::select::Allowed;
use super::{Mode, legs};
use crate::beside::beside;
use crate::embed::StaticEmbedder;
use crate::error::SearchError;
use crate::index::View;

/// More documents than this are worth a second thread.
const MANY: u64 = 20_000;
/// Up to so many candidates are weighed sooner than a second thread begins.
const FEW: usize = 64;
/// What a clause brings, for a hundred of the whole query.
const OF_A_CLAUSE: usize = 30;

/// Where a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub tier: usize,
    pub segment: usize,
    pub document: DocId,
}

impl Place {
    pub fn address(self) -> DocAddress {
        DocAddress::new(u32::try_from(self.segment).unwrap_or(u32::MAX), self.document)
    }
}

/// A document and what speaks for it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Candidate {
    pub place: Place,
    /// What each word of the query adds to its BM25.
    pub words: Vec<f32>,
    /// For each part of the query, how near its vector is.
    pub likeness: Vec<f32>,
    /// The same for its name alone.
    pub name: Vec<f32>,
    /// The same word by word.
    pub late: Vec<f32>,
}

/// How many documents a leg brings for the whole query, and for each clause.
pub(super) struct Pool {
    pub whole: usize,
    pub clause: usize,
}

impl Pool {
    pub fn of(whole: usize) -> Self {
        Self { whole, clause: (whole * OF_A_CLAUSE / 100).max(1) }
    }
}

/// Everything that either leg brings, and what goes by the name, with what speaks for it.
pub(super) fn gather(
    tiers: &[&View],
    asked: &Asked,
    allowed: &Allowed,
    (mode, pool): (Mode, &Pool),
) -> Result<(Vec<Candidate>, Named), SearchError> {
    let by_vector = || match mode {
        Mode::Text => Vec::new(),
        Mode::Vector | Mode::Hybrid => legs::by_vector(tiers, asked, allowed, pool),
    };
    let by_word = || {
        let places = match mode {
            Mode::Vector => Vec::new(),
            Mode::Text | Mode::Hybrid => legs::by_text(tiers, asked, allowed, pool)?,
        };
        Ok::<_, SearchError>((places, names::named(tiers, &asked.text, allowed, pool.whole)?))
    };
    let total: u64 = tiers.iter().map(|view| view.len()).sum();
    let (of_words, of_vector) = if total > MANY && mode == Mode::Hybrid {
        beside(by_word, by_vector)
    } else {
        (by_word(), by_vector())
    };
    let (mut places, named) = of_words?;
    places.extend(of_vector);
    places.extend(named.places());
    places.sort_unstable();
    places.dedup();
    let parts = asked.parts.len();
    let mut candidates: Vec<Candidate> = places
        .into_iter()
        .map(|place| Candidate {
            place,
            words: vec![0.0; asked.words.words.len()],
            likeness: vec![0.0; parts],
            name: vec![0.0; parts],
            late: vec![0.0; parts],
        })
        .collect();
    for group in
        candidates.chunk_by_mut(|a, b| (a.place.tier, a.place.segment) == (b.place.tier, b.place.segment))
    {
        let Some((view, place)) =
            group.first().and_then(|first| Some((tiers.get(first.place.tier)?, first.place)))
        else {
            continue;
        };
        weigh_words(view, place.segment, asked, group).map_err(|error| view.damaged(&error))?;
        if mode == Mode::Text {
            continue;
        }
        let (some, others) = group.split_at_mut(if group.len() > FEW { group.len() / 2 } else { 0 });
        if some.is_empty() {
            weigh_meaning(view, place, asked, others, mode);
        } else {
            beside(
                || weigh_meaning(view, place, asked, some, mode),
                || weigh_meaning(view, place, asked, others, mode),
            );
        }
    }
    Ok((candidates, named))
}

/// What the words of the query add to some documents of one segment, in order.
fn weigh_words(view: &View, segment: usize, asked: &Asked, group: &mut [Candidate]) -> tantivy::Result<()> {
    let Some(reader) = view.searcher.segment_readers().get(segment) else { return Ok(()) };
    let norms = reader.get_fieldnorms_reader(view.fields.text)?;
    let index = reader.inverted_index(view.fields.text)?;
    for (number, word) in asked.words.words.iter().enumerate().filter(|(_, word)| word.documents > 0) {
        let term = Term::from_field_text(view.fields.text, &word.text);
        let Some(mut postings) = index.read_postings(&term, IndexRecordOption::WithFreqs)? else { continue };
        for candidate in group.iter_mut() {
            let document = candidate.place.document;
            let at = if postings.doc() < document { postings.seek(document) } else { postings.doc() };
            if at == document
                && let Some(weight) = candidate.words.get_mut(number)
            {
                *weight = word.weight.score(norms.fieldnorm_id(document), postings.term_freq());
            }
        }
    }
    Ok(())
}

/// How near the parts of the query are to some documents of one segment.
fn weigh_meaning(view: &View, place: Place, asked: &Asked, group: &mut [Candidate], mode: Mode) {
    let Some(vectors) = view.vectors.get(place.segment) else { return };
    let embedder = StaticEmbedder::new();
    let Asked { parts, late, .. } = asked;
    let documents: Vec<DocId> = group.iter().map(|candidate| candidate.place.document).collect();
    for (number, part) in parts.iter().enumerate() {
        let Some(vector) = part.vectors.get(place.tier) else { continue };
        for (candidate, likeness) in group.iter_mut().zip(vectors.likenesses(vector, &documents)) {
            if let (Some(own), Some(likeness)) = (candidate.likeness.get_mut(number), likeness) {
                *own = likeness;
            }
        }
    }
    if mode == Mode::Vector {
        return;
    }
    let mut met = late.met(embedder);
    for candidate in group {
        let tokens = vectors.tokens(candidate.place.document);
        let name = embedder.together(tokens.name());
        let nearest = met.nearest(tokens.all());
        for ((part, name_likeness), late_likeness) in
            parts.iter().zip(&mut candidate.name).zip(&mut candidate.late)
        {
            *name_likeness = dot(&part.plain, &name);
            *late_likeness = late.mean(&part.tokens, &nearest);
        }
    }
}
