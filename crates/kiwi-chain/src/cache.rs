//! A small bounded cache.
//!
//! Two generations: what is used moves into the young one, and when that is full the old one is dropped whole. So at
//! least the last `capacity` entries in use are kept, and never more than twice as many.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A bounded cache that counts.
#[derive(Debug)]
pub struct Cache<K, V> {
    generations: Mutex<Generations<K, V>>,
    capacity: usize,
    weigh: fn(&K, &V) -> usize,
    hits: AtomicU64,
    misses: AtomicU64,
}

#[derive(Debug)]
struct Generations<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    young_weight: usize,
}

impl<K: Hash + Eq, V: Clone> Cache<K, V> {
    /// A cache that keeps at least the last `capacity` entries in use. Costs nothing until it holds something.
    pub fn new(capacity: usize) -> Self {
        Self::weighted(capacity, |_, _| 1)
    }

    /// The same, where entries weigh more or less and `capacity` is a weight.
    pub fn weighted(capacity: usize, weigh: fn(&K, &V) -> usize) -> Self {
        let generations =
            Mutex::new(Generations { young: HashMap::new(), old: HashMap::new(), young_weight: 0 });
        Self { generations, capacity, weigh, hits: AtomicU64::new(0), misses: AtomicU64::new(0) }
    }

    /// What is kept under a key; counted.
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let found = self.look(key);
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    fn look<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = generations.young.get(key) {
            return Some(value.clone());
        }
        let (key, value) = generations.old.remove_entry(key)?;
        self.put(&mut generations, key, value.clone());
        Some(value)
    }

    /// Keeps a value.
    pub fn insert(&self, key: K, value: V) {
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        self.put(&mut generations, key, value);
    }

    fn put(&self, generations: &mut Generations<K, V>, key: K, value: V) {
        if generations.young_weight >= self.capacity {
            generations.old = std::mem::take(&mut generations.young);
            generations.young_weight = 0;
        }
        generations.young_weight += (self.weigh)(&key, &value);
        generations.young.insert(key, value);
    }

    /// Forgets everything.
    pub fn clear(&self) {
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        *generations = Generations { young: HashMap::new(), old: HashMap::new(), young_weight: 0 };
    }

    /// How often something was found, and how often not.
    pub fn counts(&self) -> (u64, u64) {
        (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_use_stays_and_the_rest_goes() {
        let cache = Cache::new(10);
        for i in 0..1000 {
            cache.insert(i, i);
            assert_eq!(cache.get(&0), Some(0), "the one in use was dropped at {i}");
        }
        assert_eq!(cache.get(&500), None);
        assert_eq!(cache.counts(), (1000, 1));
        let generations = cache.generations.lock().expect("lock");
        assert!(generations.young.len() + generations.old.len() <= 20);
        drop(generations);
        cache.clear();
        assert_eq!(cache.get(&0), None);
    }
}
