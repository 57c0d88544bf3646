//! Products of rows of numbers.

/// So many sums are added up side by side: one after the other would wait for each addition.
pub(super) const LANES: usize = 16;

/// The product of two rows. What one has more than the other does not count.
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let ((wide_a, rest_a), (wide_b, rest_b)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut lanes = [0.0; LANES];
    for (a, b) in wide_a.iter().zip(wide_b) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += a * b;
        }
    }
    let rest: f32 = rest_a.iter().zip(rest_b).map(|(a, b)| a * b).sum();
    rest + lanes.iter().sum::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_counts_once() {
        for length in [0_u8, 1, 15, 16, 17, 40] {
            let numbers: Vec<f32> = (1..=length).map(f32::from).collect();
            let squares: f32 = numbers.iter().map(|number| number * number).sum();
            assert!((dot(&numbers, &numbers) - squares).abs() < 0.5, "{length}");
        }
    }
}
