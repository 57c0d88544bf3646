//! The house's mix of bytes into 64 bits: for caches, which are told apart by it and checked with it.

/// A checksum against accidents, not against people.
pub fn checksum(bytes: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |state: u64, word: u64| (state ^ word).wrapping_mul(MULTIPLIER).rotate_left(29);
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    let state = words
        .iter()
        .fold(mix(MULTIPLIER, bytes.len() as u64), |state, word| mix(state, u64::from_le_bytes(*word)));
    mix(mix(state, u64::from_le_bytes(last)), MULTIPLIER)
}
