//! What is indexed, by the hashes of keys.
//!
//! Every command that searches holds all of it against what lies there, so it is a table that takes its keys as they are:
//! they are hashes already.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::document::KeyHash;

/// What is indexed, in which state it was, and whether it was met again.
#[derive(Default)]
pub struct Known(HashMap<KeyHash, Entry, BuildHasherDefault<AsItIs>>);

struct Entry {
    stamp: u64,
    is_met: AtomicBool,
}

impl Known {
    pub(super) fn with_capacity(count: usize) -> Self {
        Self(HashMap::with_capacity_and_hasher(count, BuildHasherDefault::default()))
    }

    /// Takes note of something that is indexed. Says whether it was known.
    pub(super) fn insert(&mut self, key: KeyHash, stamp: u64) -> bool {
        self.0.insert(key, Entry { stamp, is_met: AtomicBool::new(false) }).is_some()
    }

    /// Takes note that something lies there. Says whether it is indexed as it is. Many threads may meet at once.
    pub fn meet(&self, key: KeyHash, stamp: u64) -> bool {
        let entry = self.0.get(&key);
        if let Some(entry) = entry {
            entry.is_met.store(true, Ordering::Relaxed);
        }
        entry.is_some_and(|entry| entry.stamp == stamp)
    }

    /// What was never met.
    pub fn unmet(&self) -> impl Iterator<Item = KeyHash> {
        self.0.iter().filter(|(_, entry)| !entry.is_met.load(Ordering::Relaxed)).map(|(key, _)| *key)
    }

    /// The state in which something was indexed.
    pub fn stamp(&self, key: KeyHash) -> Option<u64> {
        self.0.get(&key).map(|entry| entry.stamp)
    }

    /// How much is indexed.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds what is known elsewhere.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

/// Hashes a hash: it stays as it is.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn write(&mut self, bytes: &[u8]) {
        // Only for the trait: a key is one number.
        self.0 ^= kiwi_model::checksum(bytes);
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_met_as_it_was_is_known_and_what_is_not_met_is_gone() {
        let mut known = Known::with_capacity(3);
        let keys = ["a", "b", "c"].map(KeyHash::of);
        for (key, stamp) in keys.into_iter().zip(1..) {
            assert!(!known.insert(key, stamp));
        }
        assert!(known.meet(keys[0], 1) && !known.meet(keys[1], 1) && !known.meet(KeyHash::of("d"), 1));
        assert_eq!(known.unmet().collect::<Vec<_>>(), [keys[2]]);
        assert_eq!((known.len(), known.stamp(keys[1]), known.stamp(KeyHash::of("d"))), (3, Some(2), None));
    }
}
