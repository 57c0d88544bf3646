//! How far to look around a code.

use super::processor::count_differing;

/// Codes that are looked at to guess how many bits the nearest differ in: this part of all of them, and no fewer and no more.
const SAMPLE_PART: usize = 16;
const FEWEST: usize = 4096;
const MOST: usize = 16_384;
const SIDE_BY_SIDE: usize = 16;

/// In how many bits a code may differ from one, so that about so many of all codes are left.
pub(super) fn bound<'c>(all: impl Iterator<Item = &'c [u8]> + Clone, code: &[u8], wanted: usize) -> u32 {
    let width = code.len().max(1);
    let total: usize = all.clone().map(|codes| codes.len() / width).sum();
    let mut histogram = vec![0_usize; width * 8 + 1];
    let most = u32::try_from(width * 8).unwrap_or(u32::MAX);
    if total <= wanted {
        return most;
    }
    // Some codes here and there, a few side by side, since whole lines of memory are fetched.
    let every = (total / (total / SAMPLE_PART).clamp(FEWEST, MOST)).max(1);
    for codes in all {
        for codes in codes.chunks(SIDE_BY_SIDE * width).step_by(every) {
            count_differing(codes, code, every, &mut histogram);
        }
    }
    let mut sum = 0;
    let enough = (0..).zip(histogram).find_map(|(bits, count)| {
        sum += count;
        (sum >= wanted).then_some(bits)
    });
    enough.unwrap_or(most)
}
