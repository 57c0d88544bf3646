//! The hash of the vocabulary: taken when Kiwi is built and again when a word is looked up, so both use this file.

/// Before any byte.
pub(crate) const START: u64 = 0xcbf2_9ce4_8422_2325;

/// One byte more. What a prefix gives is a step on the way to the whole word, so all prefixes cost one walk.
pub(crate) fn step(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
}

/// Where to look first in a table of `2^bits` slots. The upper bits are the mixed ones.
pub(crate) fn slot(hash: u64, bits: u32) -> usize {
    usize::try_from(hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)).unwrap_or_default()
}
