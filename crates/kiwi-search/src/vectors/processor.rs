//! The loops that everything waits for, compiled once for any processor and once for those that count bits and hold
//! eight numbers at a time. The scan of all codes is written once more for those that count the bits of eight words at once.
//!
//! They are written without closures: a closure is compiled for any processor, wherever it is called from.
#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "the processor is asked first"))]

use tantivy::DocId;

use super::SegmentVectors;
use super::row::likeness;

/// Bytes of a code of the usual width.
const CODE: usize = 32;

/// The numbers of those codes that differ from the query's in no more than so many bits.
pub(super) fn differing_least(codes: &[u8], query: &[u8], bound: u32, found: &mut Vec<DocId>) {
    #[cfg(target_arch = "x86_64")]
    if let (true, Ok(query)) = (counts_eight_words(), <&[u8; CODE]>::try_from(query)) {
        // SAFETY: the processor has just been asked for both features.
        unsafe {
            differing_least_of_eight(codes, query, bound, found);
        }
        return;
    }
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
    if let (true, Ok(query)) = (counts_eight_words(), <&[u8; CODE]>::try_from(query)) {
        // SAFETY: the processor has just been asked for both features.
        unsafe {
            count_differing_of_eight(codes, query, each, histogram);
        }
        return;
    }
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

/// The products of a query with the signs of some documents' codes; nothing where the processor or the width is another, and
/// whoever asks has to look them up.
pub(super) fn products(turned: &[f32], codes: &[u8], documents: &[DocId]) -> Option<Vec<f32>> {
    #[cfg(target_arch = "x86_64")]
    if let (true, ([numbers], [])) = (counts_eight_words(), turned.as_chunks::<{ 8 * CODE }>()) {
        // SAFETY: the processor has just been asked for the feature.
        return Some(unsafe { products_of_sixteen(numbers, codes.as_chunks::<CODE>().0, documents) });
    }
    let _ = (turned, codes, documents);
    None
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

/// Says that some bytes will be needed soon.
pub(crate) fn fetch_ahead(bytes: &[u8]) {
    /// What the processor fetches at a time.
    const LINE: usize = 64;
    // The last byte as well: bytes need not begin where a line does.
    for byte in bytes.iter().step_by(LINE).chain(bytes.last()) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every processor of this kind can, and the byte is there.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
                std::ptr::from_ref(byte).cast(),
            );
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = byte;
    }
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
fn counts_eight_words() -> bool {
    use std::arch::is_x86_feature_detected;
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vpopcntdq")
}

/// A query's code, twice side by side.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn twice(query: &[u8; CODE]) -> std::arch::x86_64::__m512i {
    let mut twice = [0; 2 * CODE];
    for (to, from) in twice.iter_mut().zip(query.iter().cycle()) {
        *to = *from;
    }
    load(&twice)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8; 2 * CODE]) -> std::arch::x86_64::__m512i {
    // SAFETY: there are as many bytes as are loaded, and they need not be aligned.
    unsafe { std::arch::x86_64::_mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// In how many bits each of eight codes differs, in the order 0 2 1 3 4 6 5 7: four registers hold two codes each, and
/// what their words differ in is added up side by side.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn differing_of_eight(
    eight: &[u8; 8 * CODE],
    query_twice: std::arch::x86_64::__m512i,
) -> std::arch::x86_64::__m512i {
    use std::arch::x86_64::{
        _mm512_add_epi64, _mm512_popcnt_epi64, _mm512_setzero_si512, _mm512_shuffle_i64x2,
        _mm512_unpackhi_epi64, _mm512_unpacklo_epi64, _mm512_xor_si512,
    };
    let ([one, two, three, four], _) = eight.as_chunks::<{ 2 * CODE }>() else {
        return _mm512_setzero_si512();
    };
    let a = _mm512_popcnt_epi64(_mm512_xor_si512(load(one), query_twice));
    let b = _mm512_popcnt_epi64(_mm512_xor_si512(load(two), query_twice));
    let c = _mm512_popcnt_epi64(_mm512_xor_si512(load(three), query_twice));
    let d = _mm512_popcnt_epi64(_mm512_xor_si512(load(four), query_twice));
    // Halves of codes 0 2, 0 2, 1 3, 1 3; then of 4 6, 4 6, 5 7, 5 7.
    let first = _mm512_add_epi64(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    let second = _mm512_add_epi64(_mm512_unpacklo_epi64(c, d), _mm512_unpackhi_epi64(c, d));
    _mm512_add_epi64(
        _mm512_shuffle_i64x2::<0b10_00_10_00>(first, second),
        _mm512_shuffle_i64x2::<0b11_01_11_01>(first, second),
    )
}

/// Eight codes at a time.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn differing_least_of_eight(codes: &[u8], query: &[u8; CODE], bound: u32, found: &mut Vec<DocId>) {
    use std::arch::x86_64::{_mm512_cmple_epu64_mask, _mm512_set1_epi64};
    let (query_twice, most) = (twice(query), _mm512_set1_epi64(i64::from(bound)));
    let (eights, rest) = codes.as_chunks::<{ 8 * CODE }>();
    let mut number: DocId = 0;
    for eight in eights {
        let near = _mm512_cmple_epu64_mask(differing_of_eight(eight, query_twice), most);
        if near != 0 {
            let mut near = near & 0b1001_1001 | (near & 0b0010_0010) << 1 | (near & 0b0100_0100) >> 1;
            while near != 0 {
                found.push(number + near.trailing_zeros());
                near &= near - 1;
            }
        }
        number += 8;
    }
    for code in rest.as_chunks::<CODE>().0 {
        if differing(code, query) <= bound {
            found.push(number);
        }
        number += 1;
    }
}

/// The same for counting them.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn count_differing_of_eight(codes: &[u8], query: &[u8; CODE], each: usize, histogram: &mut [usize]) {
    let query_twice = twice(query);
    let (eights, rest) = codes.as_chunks::<{ 8 * CODE }>();
    for eight in eights {
        let mut bits = [0_u64; 8];
        // SAFETY: there is room for as many numbers as are stored, and they need not be aligned.
        unsafe {
            std::arch::x86_64::_mm512_storeu_si512(
                bits.as_mut_ptr().cast(),
                differing_of_eight(eight, query_twice),
            );
        }
        for bits in bits {
            if let Some(count) = usize::try_from(bits).ok().and_then(|bits| histogram.get_mut(bits)) {
                *count += each;
            }
        }
    }
    count_differing_anywhere(rest, query, each, histogram);
}

/// Sixteen bits of a code say which of sixteen numbers are added; the others count against them.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn products_of_sixteen(turned: &[f32; 8 * CODE], codes: &[[u8; CODE]], documents: &[DocId]) -> Vec<f32> {
    use std::arch::x86_64::{
        _mm512_add_ps, _mm512_loadu_ps, _mm512_mask_add_ps, _mm512_reduce_add_ps, _mm512_setzero_ps,
    };
    /// So many documents ahead their codes are asked for: they lie here and there.
    const AHEAD: usize = 16;
    let mut numbers = [_mm512_setzero_ps(); CODE / 2];
    let mut all = _mm512_setzero_ps();
    for (to, from) in numbers.iter_mut().zip(turned.as_chunks::<16>().0) {
        // SAFETY: there are as many numbers as are loaded, and they need not be aligned.
        *to = unsafe { _mm512_loadu_ps(from.as_ptr()) };
        all = _mm512_add_ps(all, *to);
    }
    let all = _mm512_reduce_add_ps(all);
    let mut products = Vec::with_capacity(documents.len());
    for (at, document) in documents.iter().enumerate() {
        if let Some(code) = documents.get(at + AHEAD).and_then(|later| codes.get(*later as usize)) {
            fetch_ahead(code);
        }
        let Some(code) = codes.get(*document as usize) else {
            products.push(f32::MIN);
            continue;
        };
        let (mut even, mut odd) = (_mm512_setzero_ps(), _mm512_setzero_ps());
        for (bits, numbers) in code.as_chunks::<4>().0.iter().zip(numbers.as_chunks::<2>().0) {
            let ([a, b, c, d], [first, second]) = (bits, numbers);
            even = _mm512_mask_add_ps(even, u16::from_le_bytes([*a, *b]), even, *first);
            odd = _mm512_mask_add_ps(odd, u16::from_le_bytes([*c, *d]), odd, *second);
        }
        products.push(2.0 * _mm512_reduce_add_ps(_mm512_add_ps(even, odd)) - all);
    }
    products
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
    /// So many documents ahead their rows are asked for: they lie here and there.
    const AHEAD: usize = 8;
    let mut found = Vec::with_capacity(documents.len());
    for (at, document) in documents.iter().enumerate() {
        if let Some(row) = documents.get(at + AHEAD).and_then(|later| segment.row(*later)) {
            fetch_ahead(row);
        }
        found.push(match segment.row(*document) {
            Some(row) => likeness(query, row),
            None => None,
        });
    }
    found
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "as above")]
fn differing_least_anywhere(codes: &[u8], query: &[u8], bound: u32, found: &mut Vec<DocId>) {
    let mut number = 0;
    // The usual width gets a loop of known length.
    if let Ok(query) = <&[u8; CODE]>::try_from(query) {
        for code in codes.as_chunks::<CODE>().0 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_of_scanning_finds_the_same() {
        // The step of a well-known generator (xorshift): any bytes will do.
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut byte = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[3]
        };
        let query: Vec<u8> = (0..CODE).map(|_| byte()).collect();
        for count in [0, 1, 7, 8, 9, 16, 1003] {
            let codes: Vec<u8> = (0..count * CODE).map(|_| byte()).collect();
            for bound in [0, 100, 120, 128, 140, 256] {
                let (mut found, mut plainly) = (Vec::new(), Vec::new());
                differing_least(&codes, &query, bound, &mut found);
                differing_least_anywhere(&codes, &query, bound, &mut plainly);
                assert_eq!(found, plainly, "{count} codes, {bound} bits");
            }
            let (mut counted, mut plainly) = (vec![0; 8 * CODE + 1], vec![0; 8 * CODE + 1]);
            count_differing(&codes, &query, 3, &mut counted);
            count_differing_anywhere(&codes, &query, 3, &mut plainly);
            assert_eq!((&counted, counted.iter().sum()), (&plainly, 3 * count), "{count} codes");
        }
    }
}
