//! The loops that everything waits for, compiled once for any processor and once for those that count bits and hold
//! eight numbers at a time.
//!
//! They are written without closures: a closure is compiled for any processor, wherever it is called from.
#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "the processor is asked first"))]

use tantivy::DocId;

use super::SegmentVectors;
use super::row::likeness;

/// The numbers of those codes that differ from the query's in no more than so many bits.
pub(super) fn differing_least(codes: &[u8], query: &[u8], bound: u32, found: &mut Vec<DocId>) {
    #[cfg(target_arch = "x86_64")]
    if is_able() {
        // SAFETY: the processor has just been asked for all three features.
        unsafe {
            differing_least_there(codes, query, bound, found);
        }
        return;
    }
    differing_least_anywhere(codes, query, bound, found);
}

/// Counts, by the number of bits in which they differ from the query's, codes that stand for `each` of their kind.
pub(super) fn count_differing(codes: &[u8], query: &[u8], each: usize, histogram: &mut [usize]) {
    #[cfg(target_arch = "x86_64")]
    if is_able() {
        // SAFETY: the processor has just been asked for all three features.
        unsafe {
            count_differing_there(codes, query, each, histogram);
        }
        return;
    }
    count_differing_anywhere(codes, query, each, histogram);
}

/// How alike a query and some documents of a segment are.
pub(super) fn likenesses(segment: &SegmentVectors, query: &[f32], documents: &[DocId]) -> Vec<Option<f32>> {
    #[cfg(target_arch = "x86_64")]
    if is_able() {
        // SAFETY: the processor has just been asked for all three features.
        return unsafe { likenesses_there(segment, query, documents) };
    }
    likenesses_anywhere(segment, query, documents)
}

/// In how many bits two codes differ.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "it must become part of its callers, which are compiled for their processors"
)]
fn differing(code: &[u8], query: &[u8]) -> u32 {
    let mut bits = 0;
    for (a, b) in code.as_chunks::<8>().0.iter().zip(query.as_chunks::<8>().0) {
        bits += (u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b)).count_ones();
    }
    bits
}

#[cfg(target_arch = "x86_64")]
fn is_able() -> bool {
    use std::arch::is_x86_feature_detected;
    is_x86_feature_detected!("popcnt") && is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,popcnt")]
fn differing_least_there(codes: &[u8], query: &[u8], bound: u32, found: &mut Vec<DocId>) {
    differing_least_anywhere(codes, query, bound, found);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,popcnt")]
fn count_differing_there(codes: &[u8], query: &[u8], each: usize, histogram: &mut [usize]) {
    count_differing_anywhere(codes, query, each, histogram);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,popcnt")]
fn likenesses_there(segment: &SegmentVectors, query: &[f32], documents: &[DocId]) -> Vec<Option<f32>> {
    likenesses_anywhere(segment, query, documents)
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "as above")]
fn differing_least_anywhere(codes: &[u8], query: &[u8], bound: u32, found: &mut Vec<DocId>) {
    let mut number = 0;
    // The usual width gets a loop of known length.
    if let Ok(query) = <&[u8; 32]>::try_from(query) {
        for code in codes.as_chunks::<32>().0 {
            if differing(code, query) <= bound {
                found.push(number);
            }
            number += 1;
        }
    } else {
        for code in codes.chunks_exact(query.len().max(1)) {
            if differing(code, query) <= bound {
                found.push(number);
            }
            number += 1;
        }
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "as above")]
fn count_differing_anywhere(codes: &[u8], query: &[u8], each: usize, histogram: &mut [usize]) {
    for code in codes.chunks_exact(query.len().max(1)) {
        if let Some(count) = histogram.get_mut(differing(code, query) as usize) {
            *count += each;
        }
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "as above")]
fn likenesses_anywhere(segment: &SegmentVectors, query: &[f32], documents: &[DocId]) -> Vec<Option<f32>> {
    let mut found = Vec::with_capacity(documents.len());
    for document in documents {
        found.push(match segment.row(*document) {
            Some(row) => likeness(query, row),
            None => None,
        });
    }
    found
}
