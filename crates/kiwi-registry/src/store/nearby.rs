//! Vectors in memory, for the engine that has no index of them: a scan over their codes, and of the best over small numbers.

use kiwi_search::Codes;
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

struct Known {
    /// The last change that was read.
    change: i64,
    rows: Vec<Row>,
    /// By these most rows are passed by; the rows have the same numbers.
    codes: Codes,
    at: HashMap<i64, usize>,
}

/// So many times what is wanted is compared number by number, by how little their codes differ.
const RING: usize = 40;
/// And never fewer: codes tell little about the order of the very nearest.
const LEAST: usize = 2000;
/// How much wider the ring gets where too little of it counts.
const WIDER: usize = 4;

struct Row {
    tool: i64,
    is_public: bool,
    vector: Option<Coarse>,
}

impl Default for Known {
    fn default() -> Self {
        Self { change: 0, rows: Vec::new(), codes: Codes::new(DIMENSIONS), at: HashMap::new() }
    }
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

    fn numbers(&self) -> [f32; DIMENSIONS] {
        self.steps.map(f32::from)
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
        let Known { rows: known_rows, codes, at, .. } = &mut *known;
        for (tool, is_public, vector) in rows {
            let vector = vector.as_deref().map(Coarse::read).transpose()?;
            let number = *at.entry(tool).or_insert(known_rows.len());
            let numbers = vector.as_ref().map_or([0.0; DIMENSIONS], Coarse::numbers);
            codes.set(number, &numbers);
            let row = Row { tool, is_public, vector };
            match known_rows.get_mut(number) {
                Some(place) => *place = row,
                None => known_rows.push(row),
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
        let may_see = |row: &&Row| row.is_public || sees_all || own.contains(&row.tool);
        let mut ring = (most * RING).max(LEAST);
        loop {
            let around = known.codes.around(&query.numbers(), ring);
            let rows = around.iter().filter_map(|at| known.rows.get(*at as usize)).filter(may_see);
            let near = rows.filter_map(|row| Some((row.vector.as_ref()?.likeness(&query), row.tool)));
            let mut near: Vec<(f32, i64)> = near.collect();
            // Where the caller may not see much of it, a wider ring is looked at.
            if near.len() >= most || ring >= known.rows.len() {
                near.retain(|(likeness, _)| *likeness > 0.0);
                cut(&mut near, most);
                return near.into_iter().map(|(_, tool)| tool).collect();
            }
            ring *= WIDER;
        }
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
            (0..12_288).map(|_| (0..DIMENSIONS).map(|_| random()).collect()).collect();
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
