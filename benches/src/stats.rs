//! Taking time: interleaved, so that a busy moment hits both sides; medians, so that one does not matter.

use anyhow::{Result, bail};
use std::time::{Duration, Instant};

/// Times of the same thing, in microseconds.
#[derive(Debug, Clone, Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// Adds one.
    pub fn push(&mut self, time: Duration) {
        self.0.push(time.as_secs_f64() * 1e6);
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The value that `share` of all are not above.
    pub fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an index into a list"
        )]
        let index = ((sorted.len().saturating_sub(1)) as f64 * share).round() as usize;
        sorted.get(index).copied().unwrap_or(f64::NAN)
    }

    /// The median.
    pub fn p50(&self) -> f64 {
        self.quantile(0.5)
    }
}

/// Times one call.
pub fn time<T>(work: impl FnOnce() -> Result<T>) -> Result<(Duration, T)> {
    let since = Instant::now();
    let result = work()?;
    Ok((since.elapsed(), result))
}

/// Runs two things in turn, each `turns` times after a tenth of that as warm-up.
pub fn interleave(
    turns: usize,
    mut a: impl FnMut() -> Result<()>,
    mut b: impl FnMut() -> Result<()>,
) -> Result<(Samples, Samples)> {
    if turns == 0 {
        bail!("nothing to measure");
    }
    for _ in 0..turns.div_ceil(10) {
        a()?;
        b()?;
    }
    let (mut first, mut second) = (Samples::default(), Samples::default());
    for turn in 0..turns {
        // The order changes too: whoever goes second finds warmer caches.
        if turn % 2 == 0 {
            first.push(time(&mut a)?.0);
            second.push(time(&mut b)?.0);
        } else {
            second.push(time(&mut b)?.0);
            first.push(time(&mut a)?.0);
        }
    }
    Ok((first, second))
}

/// One of several things to run in turn; it takes its own time, which may be less than the whole call.
pub type Side<'a> = Box<dyn FnMut() -> Result<Duration> + 'a>;

/// Runs all sides in turn, each `turns` times after a tenth of that as warm-up; the samples of each, in that order.
pub fn rotate(turns: usize, sides: &mut [Side<'_>]) -> Result<Vec<Samples>> {
    rotate_rows(turns, 1, sides)
}

/// The same, each side `row` times before the next one's turn: as somebody finds it who asks one of them and no other.
pub fn rotate_rows(turns: usize, row: usize, sides: &mut [Side<'_>]) -> Result<Vec<Samples>> {
    if turns == 0 || row == 0 || sides.is_empty() {
        bail!("nothing to measure");
    }
    for side in &mut *sides {
        for _ in 0..turns.div_ceil(10) {
            side()?;
        }
    }
    let mut samples = vec![Samples::default(); sides.len()];
    for turn in 0..turns.div_ceil(row) {
        // Another one goes first each time, and every other time the order is reversed: nobody always follows the
        // same neighbour.
        let order = (0..sides.len()).map(|place| (place + turn) % sides.len());
        let order: Vec<usize> = if turn % 2 == 0 { order.collect() } else { order.rev().collect() };
        for at in order {
            if let (Some(side), Some(samples)) = (sides.get_mut(at), samples.get_mut(at)) {
                for _ in 0..row.min(turns - turn * row) {
                    samples.push(side()?);
                }
            }
        }
    }
    Ok(samples)
}

/// A side whose time is that of the whole call.
pub fn side<'a>(mut work: impl FnMut() -> Result<()> + 'a) -> Side<'a> {
    Box::new(move || Ok(time(&mut work)?.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_quantiles() {
        let samples = Samples((1..=101).rev().map(f64::from).collect());
        let told = [0.5, 0.0, 0.95, 1.0].map(|share| samples.quantile(share).to_string());
        assert_eq!(told, ["51", "1", "96", "101"]);
        assert!(Samples::default().p50().is_nan());
    }

    #[test]
    fn both_sides_run_equally_often() {
        let (mut a, mut b) = (0, 0);
        let (first, second) = interleave(
            20,
            || {
                a += 1;
                Ok(())
            },
            || {
                b += 1;
                Ok(())
            },
        )
        .expect("samples");
        assert_eq!((a, b, first.count(), second.count()), (22, 22, 20, 20));
    }

    #[test]
    fn a_row_is_not_interrupted_and_the_last_one_may_be_shorter() {
        let asked = std::cell::RefCell::new(Vec::new());
        let note = |who: usize| {
            side({
                let asked = &asked;
                move || {
                    asked.borrow_mut().push(who);
                    Ok(())
                }
            })
        };
        let mut sides = [note(0), note(1)];
        let samples = rotate_rows(5, 3, &mut sides).expect("samples");
        assert_eq!(samples.iter().map(Samples::count).collect::<Vec<_>>(), [5, 5]);
        assert_eq!(*asked.borrow(), [0, 1, 0, 0, 0, 1, 1, 1, 0, 0, 1, 1]);
    }

    #[test]
    fn every_side_has_its_turns() {
        let counts = [0, 1, 2].map(std::cell::Cell::new);
        let mut sides: Vec<Side<'_>> = counts
            .iter()
            .map(|count| {
                side(|| {
                    count.set(count.get() + 10);
                    Ok(())
                })
            })
            .collect();
        let samples = rotate(20, &mut sides).expect("samples");
        assert_eq!(samples.iter().map(Samples::count).collect::<Vec<_>>(), [20, 20, 20]);
        drop(sides);
        assert_eq!(counts.map(std::cell::Cell::into_inner), [220, 221, 222]);
    }
}
