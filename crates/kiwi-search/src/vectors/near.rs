//! The documents nearest to some vectors, in three steps: the bits of all codes are compared; the query itself is held
//! against the codes of those that differ least; and the rows of the best of these are looked at.

use tantivy::DocId;

use super::bound::bound;
use super::processor::{differing_least, products};
use super::{Coder, SegmentVectors};
use crate::beside::beside;

/// Codes that are held against the query itself: so many for each document that is wanted, but no more than this part of
/// all of them, and at least so many.
const RING_FOR_EACH: usize = 512;
const RING_PART: usize = 16;
const RING_AT_LEAST: usize = 8192;
/// Rows that are looked at: so many for each document that is wanted, one for so many codes of the ring, and at least so
/// many.
const ROWS_FOR_EACH: usize = 16;
const CODES_FOR_A_ROW: usize = 12;
const ROWS_AT_LEAST: usize = 1024;
/// Codes of one block stay in the processor's cache while every query is held against them.
const BLOCK: usize = 1024;
/// So many blocks are worth a second thread where there are several queries; and so many where there is one.
const FEW_BLOCKS: usize = 20;
const MANY_BLOCKS: usize = 200;
/// How much wider the ring gets where too little in it counts.
const WIDER: u32 = 12;

/// What is looked for.
pub(crate) struct Wanted<'q> {
    vector: &'q [f32],
    turned: Vec<f32>,
    code: Vec<u8>,
    limit: usize,
}

impl<'q> Wanted<'q> {
    /// The `limit` documents nearest to a vector.
    pub fn new(coder: &Coder, vector: &'q [f32], limit: usize) -> Self {
        let turned = coder.turn(vector);
        let code = Coder::signs(&turned);
        Self { vector, turned, code, limit }
    }
}

/// A document and how near it is: its segment, in the order they were given, its number, the dot product of both vectors.
pub(crate) type Near = (usize, DocId, f32);

/// For each query the nearest documents, nearest first. `may` says of each document whether it counts at all.
pub(crate) fn nearest(
    segments: &[SegmentVectors],
    queries: &[Wanted<'_>],
    may: &(dyn Fn(usize, DocId) -> bool + Sync),
) -> Vec<Vec<Near>> {
    let width = queries.first().map_or(1, |query| query.code.len().max(1));
    let blocks: usize = segments.iter().map(|segment| segment.codes().len() / (BLOCK * width)).sum();
    // Where there is more, two threads share each query's scan.
    if queries.len() < 2 || !(FEW_BLOCKS..MANY_BLOCKS).contains(&blocks) {
        return one_after_another(segments, queries, may);
    }
    let (some, others) = queries.split_at(queries.len() / 2);
    let (mut found, more) =
        beside(|| one_after_another(segments, some, may), || one_after_another(segments, others, may));
    found.extend(more);
    found
}

fn one_after_another(
    segments: &[SegmentVectors],
    queries: &[Wanted<'_>],
    may: &(dyn Fn(usize, DocId) -> bool + Sync),
) -> Vec<Vec<Near>> {
    let Some(width) = queries.first().map(|query| query.code.len()).filter(|width| *width > 0) else {
        return queries.iter().map(|_| Vec::new()).collect();
    };
    let mut bounds: Vec<u32> = queries.iter().map(|query| ring_of(segments, width, query)).collect();
    let mut found: Vec<Option<Vec<Near>>> = queries.iter().map(|_| None).collect();
    let all = u32::try_from(width * 8).unwrap_or(u32::MAX);
    while found.iter().any(Option::is_none) {
        let open: Vec<usize> =
            (0..queries.len()).filter(|at| found.get(*at).is_some_and(Option::is_none)).collect();
        let rings = rings(segments, width, &open, queries, &bounds);
        for (at, ring) in open.into_iter().zip(rings) {
            let (Some(query), Some(bound)) = (queries.get(at), bounds.get_mut(at)) else { continue };
            let ring: Vec<(usize, DocId)> =
                ring.into_iter().filter(|(segment, document)| may(*segment, *document)).collect();
            // Where much does not count, the ring is widened until enough of the rest is in it.
            if ring.len() < query.limit && *bound < all {
                *bound = (*bound + WIDER).min(all);
            } else if let Some(place) = found.get_mut(at) {
                *place = Some(best(segments, width, query, ring));
            }
        }
    }
    found.into_iter().map(Option::unwrap_or_default).collect()
}

/// In how many bits a code may differ from a query's.
fn ring_of(segments: &[SegmentVectors], width: usize, query: &Wanted<'_>) -> u32 {
    let codes = segments.iter().map(SegmentVectors::codes);
    let total: usize = codes.clone().map(|codes| codes.len() / width).sum();
    let ring = (query.limit * RING_FOR_EACH).min(total / RING_PART).max(RING_AT_LEAST);
    bound(codes, &query.code, ring)
}

/// For each query the documents whose codes differ in no more bits than they may.
fn rings(
    segments: &[SegmentVectors],
    width: usize,
    open: &[usize],
    queries: &[Wanted<'_>],
    bounds: &[u32],
) -> Vec<Vec<(usize, DocId)>> {
    let numbered = segments.iter().enumerate();
    let blocks: Vec<(usize, usize, &[u8])> = numbered
        .flat_map(|(number, segment)| {
            let blocks = segment.codes().chunks(BLOCK * width).enumerate();
            blocks.map(move |(block, codes)| (number, block * BLOCK, codes))
        })
        .collect();
    let look = |blocks: &[(usize, usize, &[u8])]| {
        let mut rings: Vec<Vec<(usize, DocId)>> = open.iter().map(|_| Vec::new()).collect();
        let mut near = Vec::new();
        for (number, first, codes) in blocks {
            let first = DocId::try_from(*first).unwrap_or(DocId::MAX);
            for (at, ring) in open.iter().zip(&mut rings) {
                let (Some(query), Some(bound)) = (queries.get(*at), bounds.get(*at)) else { continue };
                near.clear();
                differing_least(codes, &query.code, *bound, &mut near);
                ring.extend(near.iter().map(|at| (*number, first.saturating_add(*at))));
            }
        }
        rings
    };
    if blocks.len() < MANY_BLOCKS {
        return look(&blocks);
    }
    let (some, others) = blocks.split_at(blocks.len() / 2);
    let (mut rings, more) = beside(|| look(some), || look(others));
    rings.iter_mut().zip(more).for_each(|(ring, more)| ring.extend(more));
    rings
}

/// A ring, each of it with the product of the query and the signs of its code.
fn held(segments: &[SegmentVectors], width: usize, query: &Wanted<'_>, ring: &[(usize, DocId)]) -> Vec<Near> {
    let mut held = Vec::with_capacity(ring.len());
    let mut sums = None;
    for group in ring.chunk_by(|a, b| a.0 == b.0) {
        let Some((number, segment)) = group.first().and_then(|first| Some((first.0, segments.get(first.0)?)))
        else {
            continue;
        };
        let documents: Vec<DocId> = group.iter().map(|(_, document)| *document).collect();
        let codes = segment.codes();
        let products = products(&query.turned, codes, &documents).unwrap_or_else(|| {
            let sums = sums.get_or_insert_with(|| Sums::of(&query.turned));
            let code = |document: &DocId| codes.get(*document as usize * width..)?.get(..width);
            let product = |document| code(document).map_or(f32::MIN, |code| sums.held_against(code));
            documents.iter().map(product).collect()
        });
        held.extend(documents.into_iter().zip(products).map(|(document, it)| (number, document, it)));
    }
    held
}

/// The nearest of a ring.
fn best(
    segments: &[SegmentVectors],
    width: usize,
    query: &Wanted<'_>,
    ring: Vec<(usize, DocId)>,
) -> Vec<Near> {
    let nearer = |a: &Near, b: &Near| b.2.total_cmp(&a.2).then_with(|| (a.0, a.1).cmp(&(b.0, b.1)));
    let rows = (query.limit * ROWS_FOR_EACH).max(ring.len() / CODES_FOR_A_ROW).max(ROWS_AT_LEAST);
    let mut ring: Vec<Near> = if ring.len() > rows {
        let mut held = held(segments, width, query, &ring);
        held.select_nth_unstable_by(rows - 1, nearer);
        held.truncate(rows);
        held
    } else {
        ring.into_iter().map(|(segment, document)| (segment, document, 0.0)).collect()
    };
    // By segment and document, so that rows are looked at in the order in which they lie.
    ring.sort_unstable_by_key(|(segment, document, _)| (*segment, *document));
    let mut found = Vec::with_capacity(ring.len());
    for group in ring.chunk_by(|a, b| a.0 == b.0) {
        let Some((number, segment)) = group.first().and_then(|first| Some((first.0, segments.get(first.0)?)))
        else {
            continue;
        };
        let documents: Vec<DocId> = group.iter().map(|(_, document, _)| *document).collect();
        let likenesses = segment.likenesses(query.vector, &documents);
        let near = documents.into_iter().zip(likenesses);
        found.extend(near.filter_map(|(document, likeness)| Some((number, document, likeness?))));
    }
    if found.len() > query.limit && query.limit > 0 {
        found.select_nth_unstable_by(query.limit - 1, nearer);
    }
    found.truncate(query.limit);
    found.sort_by(nearer);
    found
}

/// What each byte of a code adds to the product of the query with the code's signs.
struct Sums(Vec<[f32; 256]>);

impl Sums {
    fn of(turned: &[f32]) -> Self {
        let table = |numbers: &[f32]| {
            let mut table = [0.0; 256];
            for (byte, sum) in (0_u16..).zip(&mut table) {
                *sum = numbers
                    .iter()
                    .zip(0..)
                    .map(|(it, at)| if byte >> at & 1 == 1 { *it } else { -*it })
                    .sum();
            }
            table
        };
        Self(turned.chunks(8).map(table).collect())
    }

    fn held_against(&self, code: &[u8]) -> f32 {
        // Four sums side by side: one after the other would wait for each addition.
        let mut sums = [0.0_f32; 4];
        for (tables, bytes) in self.0.as_chunks::<4>().0.iter().zip(code.as_chunks::<4>().0) {
            for ((sum, table), byte) in sums.iter_mut().zip(tables).zip(bytes) {
                *sum += table.get(usize::from(*byte)).copied().unwrap_or(0.0);
            }
        }
        sums.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_the_same_wherever_they_are_made() {
        let turned: Vec<f32> = (0..256_u16).map(|at| (f32::from(at) * 0.7).sin()).collect();
        let codes: Vec<u8> = (0..40 * 32_u32).map(|at| (at * at / 7).to_le_bytes()[0]).collect();
        let documents: Vec<DocId> = (0..40).rev().collect();
        let sums = Sums::of(&turned);
        // Where the processor has no way of its own there is nothing to compare.
        for (document, product) in
            documents.iter().zip(products(&turned, &codes, &documents).into_iter().flatten())
        {
            let code = &codes[*document as usize * 32..][..32];
            assert!((sums.held_against(code) - product).abs() < 1e-3, "{document}");
        }
        assert_eq!(products(&turned[..64], &codes, &documents), None);
    }

    #[test]
    fn the_sums_are_the_product_with_the_signs() {
        let turned: Vec<f32> = (0..64_u8).map(|at| (f32::from(at) * 0.7).sin()).collect();
        let code = Coder::signs(&turned);
        let all: f32 = turned.iter().map(|it| it.abs()).sum();
        assert!((Sums::of(&turned).held_against(&code) - all).abs() < 1e-3);
        let none: Vec<u8> = code.iter().map(|byte| !byte).collect();
        assert!((Sums::of(&turned).held_against(&none) + all).abs() < 1e-3);
    }
}
