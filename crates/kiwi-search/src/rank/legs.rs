//! The best documents of each leg.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tantivy::query::{BooleanQuery, EnableScoring, Query, TermQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::{Score, Term};

use super::asked::{Asked, Part};
use super::candidates::{Place, Pool};
use super::select::Allowed;
use super::words::{Everywhere, QueryWord};
use crate::error::SearchError;
use crate::index::View;
use crate::vectors::{Wanted, nearest};

/// More documents than this, and only the rarest words of a query are looked for.
const MANY: u64 = 100_000;
const RAREST: usize = 6;
const RAREST_OF_CLAUSE: usize = 3;
/// Clauses that bring the nearest of their own there.
const SCANNED_CLAUSES: usize = 3;

/// A score that can be ordered.
#[derive(PartialEq)]
struct Ordered(Score, Reverse<Place>);

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0).then_with(|| self.1.cmp(&other.1))
    }
}

/// The documents whose words fit best the whole query, or one of its clauses.
pub(super) fn by_text(
    tiers: &[&View],
    asked: &Asked,
    allowed: &Allowed,
    pool: &Pool,
) -> Result<Vec<Place>, SearchError> {
    let mut found = Vec::new();
    for (number, part) in asked.parts.iter().enumerate() {
        let (limit, rarest) =
            if number == 0 { (pool.whole, RAREST) } else { (pool.clause, RAREST_OF_CLAUSE) };
        let words = telling(tiers, asked, part, rarest);
        found.extend(part_by_text(tiers, &words, allowed, limit)?);
    }
    Ok(found)
}

/// The words of a part that are looked for. Among very many documents only the rarest: common ones take most of the time
/// and bring little, and count all the same when what was found is weighed.
fn telling<'a>(tiers: &[&View], asked: &'a Asked, part: &Part, rarest: usize) -> Vec<&'a QueryWord> {
    let words = part.words.iter().filter_map(|number| asked.words.words.get(*number));
    let mut words: Vec<&QueryWord> = words.filter(|word| word.documents > 0).collect();
    if tiers.iter().map(|view| view.len()).sum::<u64>() > MANY {
        words.sort_by_key(|word| word.documents);
        words.truncate(rarest);
    }
    words
}

fn part_by_text(
    tiers: &[&View],
    words: &[&QueryWord],
    allowed: &Allowed,
    limit: usize,
) -> Result<Vec<Place>, SearchError> {
    let mut best: BinaryHeap<Reverse<Ordered>> = BinaryHeap::with_capacity(limit + 1);
    let everywhere = Everywhere { tiers };
    for (tier, view) in tiers.iter().enumerate() {
        let term = |word: &&QueryWord| {
            let term = Term::from_field_text(view.fields.text, &word.text);
            Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs)) as Box<dyn Query>
        };
        let query = BooleanQuery::union(words.iter().map(term).collect());
        let scoring = EnableScoring::enabled_from_statistics_provider(&everywhere, &view.searcher);
        let weight = query.weight(scoring).map_err(|error| view.damaged(&error))?;
        for (segment, reader) in view.searcher.segment_readers().iter().enumerate() {
            let least = |best: &BinaryHeap<Reverse<Ordered>>| match best.peek() {
                Some(Reverse(Ordered(score, _))) if best.len() >= limit => *score,
                _ => Score::MIN,
            };
            let begin = least(&best);
            weight
                .for_each_pruning(begin, reader, &mut |document, score| {
                    if !reader.is_deleted(document) && allowed.counts(tier, segment, document) {
                        best.push(Reverse(Ordered(score, Reverse(Place { tier, segment, document }))));
                        if best.len() > limit {
                            best.pop();
                        }
                    }
                    least(&best)
                })
                .map_err(|error| view.damaged(&error))?;
        }
    }
    Ok(best.into_iter().map(|Reverse(Ordered(_, Reverse(place)))| place).collect())
}

/// The documents whose vectors are nearest to the whole query, or to one of its clauses.
pub(super) fn by_vector(tiers: &[&View], asked: &Asked, allowed: &Allowed, pool: &Pool) -> Vec<Place> {
    let mut found: Vec<Vec<(f32, Place)>> = asked.parts.iter().map(|_| Vec::new()).collect();
    let limit = |part: usize| if part == 0 { pool.whole } else { pool.clause };
    // Every part is a scan of its own: among very many documents only some clauses have one, and the others are weighed.
    let is_many = tiers.iter().map(|view| view.len()).sum::<u64>() > MANY;
    let parts = if is_many { 1 + SCANNED_CLAUSES } else { asked.parts.len() };
    for (tier, view) in tiers.iter().enumerate() {
        let vectors = asked.parts.iter().enumerate().take(parts).filter_map(|(number, part)| {
            let vector = part.vectors.get(tier)?;
            // A text without a word that is known is near to nothing.
            vector.iter().any(|number| *number != 0.0).then_some((number, vector))
        });
        let (numbers, wanted): (Vec<usize>, Vec<Wanted<'_>>) =
            vectors.map(|(number, vector)| (number, Wanted::new(&view.coder, vector, limit(number)))).unzip();
        let may = |segment: usize, document| {
            let reader = view.searcher.segment_readers().get(segment);
            reader.is_some_and(|reader| !reader.is_deleted(document))
                && allowed.counts(tier, segment, document)
        };
        for (number, near) in numbers.into_iter().zip(nearest(&view.vectors, &wanted, &may)) {
            let near = near.into_iter();
            let near =
                near.map(|(segment, document, likeness)| (likeness, Place { tier, segment, document }));
            if let Some(found) = found.get_mut(number) {
                found.extend(near);
            }
        }
    }
    let mut places = Vec::new();
    for (number, mut found) in found.into_iter().enumerate() {
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        places.extend(found.into_iter().take(limit(number)).map(|(_, place)| place));
    }
    places
}
