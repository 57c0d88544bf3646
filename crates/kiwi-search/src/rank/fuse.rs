//! What speaks for a document, added up.
//!
//! BM25 is added as it is, not as a share of the best: a query that quotes rare words of one item gives it a high sum, and
//! then words decide; a query in other words gives everything a low one, and then meaning decides. So each query weighs its
//! legs by itself. Where a query asks for several things, each clause spreads a share of attention over the documents, and
//! what one clause clearly means is not drowned by the rest.

use super::Mode;
use super::asked::Asked;
use super::candidates::Candidate;

/// What likeness of meaning counts, in units of BM25: of the whole text, of the name, word by word.
const TEXT: f32 = 45.0;
const NAME: f32 = 10.0;
const LATE: f32 = 30.0;
/// How sharply attention is spread.
const SHARPNESS: f32 = 0.16;
/// What the whole query counts beside all its clauses.
const WHOLE: f32 = 0.35;
/// What the use of an item counts at most, in units of BM25.
const USAGE: f32 = 4.0;
/// Less likeness than this, and no word in common, is nothing.
const UNLIKE: f32 = 0.05;

/// What was said for an item.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Weighed {
    /// BM25 of the whole query.
    pub text: f32,
    /// How near its text is in meaning, from -1 to 1.
    pub likeness: f32,
    /// The same for its name alone.
    pub name: f32,
    /// The same word by word.
    pub late: f32,
    /// How much it was used, from 0 to 1.
    pub usage: f32,
    /// All of it together; only differences mean something.
    pub total: f32,
}

impl Weighed {
    /// The same with its use.
    pub(super) fn used(self, usage: f32) -> Self {
        let usage = usage.clamp(0.0, 1.0);
        Self { usage, total: self.total + SHARPNESS * USAGE * usage, ..self }
    }

    /// How good it is beside the best, from 0 to 1.
    pub(super) fn beside(self, best: f32) -> f32 {
        (self.total - best).exp().clamp(0.0, 1.0)
    }
}

/// Adds up what speaks for each candidate; `None` for what has nothing to do with the query.
pub(super) fn weighed(candidates: &[Candidate], asked: &Asked, mode: Mode) -> Vec<Option<Weighed>> {
    let sums: Vec<Vec<f32>> = (0..asked.parts.len())
        .map(|part| {
            candidates.iter().map(|candidate| SHARPNESS * sum(candidate, asked, part, mode)).collect()
        })
        .collect();
    let totals = match sums.split_first() {
        Some((whole, [])) => whole.clone(),
        Some((whole, clauses)) => mixed(whole, clauses),
        None => Vec::new(),
    };
    candidates
        .iter()
        .zip(totals)
        .map(|(candidate, total)| {
            let first = |numbers: &[f32]| numbers.first().copied().unwrap_or(0.0);
            let text = candidate.words.iter().sum();
            let likeness = candidate.likeness.iter().copied().fold(0.0, f32::max);
            let weighed = Weighed {
                text,
                likeness: first(&candidate.likeness),
                name: first(&candidate.name),
                late: first(&candidate.late),
                usage: 0.0,
                total,
            };
            (text > 0.0 || likeness > UNLIKE).then_some(weighed)
        })
        .collect()
}

/// What speaks for a candidate as far as one part of the query goes.
fn sum(candidate: &Candidate, asked: &Asked, part: usize, mode: Mode) -> f32 {
    let at = |numbers: &[f32]| numbers.get(part).copied().unwrap_or(0.0);
    let text = || -> f32 {
        let words = asked.parts.get(part).map(|part| part.words.as_slice()).unwrap_or_default();
        words.iter().filter_map(|word| candidate.words.get(*word)).sum()
    };
    match mode {
        Mode::Text => text(),
        Mode::Vector => TEXT * at(&candidate.likeness),
        Mode::Hybrid => {
            text() + TEXT * at(&candidate.likeness) + NAME * at(&candidate.name) + LATE * at(&candidate.late)
        }
    }
}

/// The attention that the whole query and its clauses together give to each candidate, as a logarithm.
fn mixed(whole: &[f32], clauses: &[Vec<f32>]) -> Vec<f32> {
    #[expect(clippy::cast_precision_loss, reason = "a query has few clauses")]
    let share = (1.0 - WHOLE) / clauses.len().max(1) as f32;
    let spread = |sums: &[f32], share: f32| {
        let all = log_sum(sums);
        sums.iter().map(|sum| sum - all + share.ln()).collect::<Vec<f32>>()
    };
    let mut given = vec![spread(whole, WHOLE)];
    given.extend(clauses.iter().map(|clause| spread(clause, share)));
    let of = |candidate: usize| -> Vec<f32> {
        given.iter().filter_map(|part| part.get(candidate).copied()).collect()
    };
    (0..whole.len()).map(|candidate| log_sum(&of(candidate))).collect()
}

/// The logarithm of a sum of which only logarithms are known.
fn log_sum(logarithms: &[f32]) -> f32 {
    let largest = logarithms.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if !largest.is_finite() {
        return largest;
    }
    largest + logarithms.iter().map(|it| (it - largest).exp()).sum::<f32>().ln()
}
