//! Vectors in memory, for the engine that has no index of them: a scan over their signs, and of the best over small numbers.

use std::collections::{HashMap, HashSet};
use std::sync::{PoisonError, RwLock};

use crate::error::RegistryError;

/// Numbers of a vector.
pub(super) const DIMENSIONS: usize = 256;

/// Every vector there is, as far as it was read.
#[derive(Default)]
pub(super) struct Nearby {
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    /// The last change that was read.
    change: i64,
    rows: Vec<Row>,
    /// The numbers of each row's vector, apart from the rest: most of them are never read.
    vectors: Vec<Option<Coarse>>,
    at: HashMap<i64, usize>,
}

type Signs = [u64; DIMENSIONS / 64];

/// Fewer are compared number by number.
const FEW: usize = 4096;
/// So many times what is wanted is compared number by number, by how many signs agree.
const RING: usize = 40;
/// And never fewer: signs tell little about the order of the very nearest.
const LEAST: usize = 2000;

/// What a scan reads of every tool.
struct Row {
    tool: i64,
    is_public: bool,
    has_vector: bool,
    signs: Signs,
}

/// A vector in steps, and what makes it of length 1 again.
struct Coarse {
    steps: [i8; DIMENSIONS],
    scale: f32,
}

/// A row as it is read: tool, whether it is public, its vector.
pub(super) type Changed = (i64, bool, Option<Vec<u8>>);

/// The bytes by which a vector is kept; nothing where it has no direction.
pub(super) fn coarse(vector: &[f32]) -> Option<Vec<u8>> {
    let most = vector.iter().fold(0.0_f32, |most, number| most.max(number.abs()));
    #[expect(clippy::cast_possible_truncation, reason = "between -127 and 127")]
    let step = |number: &f32| ((number / most * 127.0).round() as i8).cast_unsigned();
    (most > 0.0 && vector.len() == DIMENSIONS).then(|| vector.iter().map(step).collect())
}

impl Coarse {
    fn read(bytes: &[u8]) -> Result<Self, RegistryError> {
        let bytes: [u8; DIMENSIONS] =
            bytes.try_into().map_err(|_| RegistryError::broken("a vector of another length"))?;
        let steps = bytes.map(u8::cast_signed);
        let squares: i32 = steps.iter().map(|step| i32::from(*step) * i32::from(*step)).sum();
        #[expect(clippy::cast_precision_loss, reason = "a sum of 256 small squares")]
        let length = (squares.max(1) as f32).sqrt();
        Ok(Self { steps, scale: length.recip() })
    }

    fn signs(&self) -> Signs {
        let mut signs = Signs::default();
        for (word, steps) in signs.iter_mut().zip(self.steps.as_chunks::<64>().0) {
            *word = steps.iter().fold(0, |word, step| word << 1 | u64::from(*step > 0));
        }
        signs
    }

    fn likeness(&self, other: &Self) -> f32 {
        // Nothing here can overflow, and saying so lets the compiler take many at once.
        let product = |(one, other): (&i8, &i8)| i32::from(i16::from(*one).wrapping_mul(i16::from(*other)));
        let sum = self.steps.iter().zip(&other.steps).map(product).fold(0, i32::wrapping_add);
        #[expect(clippy::cast_precision_loss, reason = "a sum of 256 small products")]
        let sum = sum as f32;
        sum * self.scale * other.scale
    }
}

impl Nearby {
    /// The last change that is known.
    pub fn change(&self) -> i64 {
        self.known.read().unwrap_or_else(PoisonError::into_inner).change
    }

    /// Takes in what changed, up to `change`.
    pub fn learn(&self, change: i64, rows: Vec<Changed>) -> Result<(), RegistryError> {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        for (tool, is_public, vector) in rows {
            let vector = vector.as_deref().map(Coarse::read).transpose()?;
            let signs = vector.as_ref().map(Coarse::signs).unwrap_or_default();
            let row = Row { tool, is_public, has_vector: vector.is_some(), signs };
            let next = known.rows.len();
            let at = *known.at.entry(tool).or_insert(next);
            let Known { rows, vectors, .. } = &mut *known;
            if let (Some(place), Some(kept)) = (rows.get_mut(at), vectors.get_mut(at)) {
                (*place, *kept) = (row, vector);
            } else {
                rows.push(row);
                vectors.push(vector);
            }
        }
        known.change = known.change.max(change);
        Ok(())
    }

    /// The tools whose vectors are nearest, best first, among those that are public or the caller's own.
    pub fn nearest(&self, query: &[f32], most: usize, sees_all: bool, own: &HashSet<i64>) -> Vec<i64> {
        let Some(query) = coarse(query).and_then(|bytes| Coarse::read(&bytes).ok()) else {
            return Vec::new();
        };
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let may_see = |row: &Row| row.has_vector && (row.is_public || sees_all || own.contains(&row.tool));
        let mut best: Vec<(f32, i64)> = Vec::with_capacity(most * 2 + 1);
        let mut least = 0.0;
        for (row, vector) in known.around(&query, (most * RING).max(LEAST), may_see) {
            let likeness = vector.likeness(&query);
            if likeness > least {
                best.push((likeness, row.tool));
                if best.len() > most * 2 {
                    cut(&mut best, most);
                    least = best.last().map_or(0.0, |(likeness, _)| *likeness);
                }
            }
        }
        cut(&mut best, most);
        best.into_iter().map(|(_, tool)| tool).collect()
    }
}

impl Known {
    /// Those whose signs agree most with the query's: at least so many, where there are as many.
    fn around<'a>(
        &'a self,
        query: &Coarse,
        wanted: usize,
        may_see: impl Fn(&Row) -> bool + 'a,
    ) -> impl Iterator<Item = (&'a Row, &'a Coarse)> {
        let query = query.signs();
        let differing = |row: &Row| -> usize {
            let pairs = row.signs.iter().zip(&query);
            pairs.map(|(one, other)| (one ^ other).count_ones() as usize).sum()
        };
        let mut most = DIMENSIONS;
        let mut distances = Vec::new();
        if self.rows.len() > FEW.max(wanted) {
            let mut counts = [0_usize; DIMENSIONS + 1];
            distances.reserve_exact(self.rows.len());
            for row in &self.rows {
                let distance = differing(row);
                distances.push(u16::try_from(distance).unwrap_or(u16::MAX));
                if let Some(count) = counts.get_mut(distance).filter(|_| may_see(row)) {
                    *count += 1;
                }
            }
            let mut sum = 0;
            most = counts
                .iter()
                .position(|count| {
                    sum += count;
                    sum >= wanted
                })
                .unwrap_or(DIMENSIONS);
        }
        let is_near =
            move |at: usize| distances.get(at).is_none_or(|distance| usize::from(*distance) <= most);
        let near = self.rows.iter().zip(&self.vectors).enumerate().filter(move |(at, _)| is_near(*at));
        near.map(|(_, pair)| pair)
            .filter(move |(row, _)| may_see(row))
            .filter_map(|(row, vector)| vector.as_ref().map(|vector| (row, vector)))
    }
}

fn cut(best: &mut Vec<(f32, i64)>, most: usize) {
    best.sort_unstable_by(|(one, a), (other, b)| other.total_cmp(one).then(a.cmp(b)));
    best.truncate(most);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(at: usize) -> Vec<f32> {
        (0..DIMENSIONS).map(|i| if i == at { 1.0 } else { 0.1 }).collect()
    }

    #[test]
    fn the_nearest_comes_first_and_what_is_not_public_only_to_its_owners() {
        let nearby = Nearby::default();
        let rows = (0..200).map(|n| (n, n % 2 == 0, coarse(&vector(usize::try_from(n).unwrap()))));
        nearby.learn(200, rows.collect()).unwrap();
        assert_eq!(nearby.change(), 200);
        assert_eq!(nearby.nearest(&vector(4), 3, false, &HashSet::new())[0], 4);
        assert_ne!(nearby.nearest(&vector(5), 3, false, &HashSet::new())[0], 5);
        assert_eq!(nearby.nearest(&vector(5), 3, false, &HashSet::from([5]))[0], 5);
        assert_eq!(nearby.nearest(&vector(7), 3, true, &HashSet::new())[0], 7);
        nearby.learn(201, vec![(4, true, None)]).unwrap();
        assert!(!nearby.nearest(&vector(4), 150, true, &HashSet::new()).contains(&4));
        assert!(nearby.nearest(&[0.0; DIMENSIONS], 3, true, &HashSet::new()).is_empty());
    }

    #[test]
    fn among_many_the_nearest_are_those_that_all_comparisons_show() {
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            f32::from(i8::from_le_bytes([(state >> 56) as u8]))
        };
        let vectors: Vec<Vec<f32>> =
            (0..3 * FEW).map(|_| (0..DIMENSIONS).map(|_| random()).collect()).collect();
        let nearby = Nearby::default();
        let rows = (0..).zip(&vectors).map(|(number, vector)| (number, number % 3 > 0, coarse(vector)));
        nearby.learn(1, rows.collect()).unwrap();
        let mut same = 0;
        for query in vectors.iter().step_by(1000) {
            // Something beside one of them.
            let query: Vec<f32> = query.iter().map(|number| number + random() / 2.0).collect();
            let near = Coarse::read(&coarse(&query).unwrap()).unwrap();
            let likeness =
                |vector: &Vec<f32>| Coarse::read(&coarse(vector).unwrap()).unwrap().likeness(&near);
            let mut exact: Vec<(f32, i64)> = (0..)
                .zip(&vectors)
                .filter(|(number, _)| number % 3 > 0)
                .map(|(n, v)| (likeness(v), n))
                .collect();
            cut(&mut exact, 10);
            let found = nearby.nearest(&query, 10, false, &HashSet::new());
            assert!(found.iter().all(|number| number % 3 > 0));
            same += exact.iter().filter(|(_, number)| found.contains(number)).count();
        }
        assert!(same >= 120, "{same} of 130");
    }
}
