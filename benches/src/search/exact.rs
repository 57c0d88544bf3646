//! The nearest items without any shortcut: every vector in full, one after the other.

use kiwi_search::StaticEmbedder;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::build::threads;

const BATCH: usize = 4096;
/// Likenesses that differ by less are the same.
const SAME: f32 = 1e-6;

/// For each question the likenesses of the nearest, best first.
pub struct Nearest {
    best: Vec<Vec<f32>>,
    limit: usize,
}

impl Nearest {
    /// Compares each question with all of `count` vectors; `vector` gives one of them.
    pub fn find(
        questions: &[Vec<f32>],
        count: usize,
        limit: usize,
        vector: &(dyn Fn(usize) -> Vec<f32> + Sync),
    ) -> Self {
        let next = AtomicUsize::new(0);
        let best = Mutex::new(vec![Vec::new(); questions.len()]);
        std::thread::scope(|scope| {
            for _ in 0..threads() {
                scope.spawn(|| {
                    let mut own = vec![Vec::new(); questions.len()];
                    loop {
                        let from = next.fetch_add(BATCH, Ordering::Relaxed);
                        let numbers = from..count.min(from.saturating_add(BATCH));
                        if numbers.is_empty() {
                            break;
                        }
                        for vector in numbers.map(vector) {
                            for (question, best) in questions.iter().zip(&mut own) {
                                keep(best, dot(question, &vector), limit);
                            }
                        }
                    }
                    let mut all = best.lock().unwrap_or_else(PoisonError::into_inner);
                    for (all, own) in all.iter_mut().zip(own) {
                        for likeness in own {
                            keep(all, likeness, limit);
                        }
                    }
                });
            }
        });
        Self { best: best.into_inner().unwrap_or_else(PoisonError::into_inner), limit }
    }

    /// Which share of the nearest was found, given how near what was found is. Of equals any will do.
    pub fn recall(&self, found: &[Vec<f32>]) -> f64 {
        let (mut met, mut all) = (0_u32, 0_u32);
        for (best, found) in self.best.iter().zip(found) {
            let least = best.last().copied().unwrap_or(f32::INFINITY) - SAME;
            let count = found.iter().take(self.limit).filter(|likeness| **likeness >= least).count();
            met += u32::try_from(count).unwrap_or(0);
            all += u32::try_from(best.len()).unwrap_or(0);
        }
        f64::from(met) / f64::from(all.max(1))
    }
}

/// Keeps a likeness if it is among the best so far.
fn keep(best: &mut Vec<f32>, likeness: f32, limit: usize) {
    if best.len() < limit || best.last().is_some_and(|last| likeness > *last) {
        let at = best.partition_point(|other| *other >= likeness);
        best.insert(at, likeness);
        best.truncate(limit);
    }
}

/// The vector of a text.
pub fn vector(text: &str) -> Vec<f32> {
    StaticEmbedder::new().vector(text)
}

/// How alike two vectors are.
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 16;
    let mut lanes = [0.0; LANES];
    for (a, b) in a.as_chunks::<LANES>().0.iter().zip(b.as_chunks::<LANES>().0) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += a * b;
        }
    }
    lanes.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_missed_shows_and_equals_do_not_count_as_missed() {
        let number = |at: usize| f32::from(u16::try_from(at / 2).unwrap());
        let vector = |at: usize| vec![number(at); 16];
        let nearest = Nearest::find(&[vec![1.0; 16]], 100, 4, &vector);
        assert_eq!(nearest.best, [[784.0, 784.0, 768.0, 768.0]]);
        assert!((nearest.recall(&[vec![784.0, 784.0, 768.0, 752.0]]) - 0.75).abs() < 1e-9);
        assert!((nearest.recall(&[vec![784.0, 784.0, 768.0, 768.0]]) - 1.0).abs() < 1e-9);
    }
}
