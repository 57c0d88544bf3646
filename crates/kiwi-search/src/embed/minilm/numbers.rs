//! What happens to numbers one by one, or row by row.

/// Replaces each row by its share of a whole: larger numbers get more, and all together get 1.
pub(super) fn softmax(row: &mut [f32]) {
    let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for number in &mut *row {
        *number = (*number - most).exp();
        sum += *number;
    }
    for number in row {
        *number /= sum;
    }
}

/// Brings a row to mean 0 and variance 1, then to what was learned.
pub(super) fn normalise(row: &mut [f32], weight: &[f32], bias: &[f32], epsilon: f32) {
    let count = count(row.len());
    let mean = row.iter().sum::<f32>() / count;
    let variance = row.iter().map(|number| (number - mean) * (number - mean)).sum::<f32>() / count;
    let factor = (variance + epsilon).sqrt().recip();
    for ((number, weight), bias) in row.iter_mut().zip(weight).zip(bias) {
        *number = (*number - mean) * factor * weight + bias;
    }
}

/// Gives a row the length 1.
pub(super) fn unit(row: &mut [f32]) {
    let length = row.iter().map(|number| number * number).sum::<f32>().sqrt();
    if length > 0.0 {
        for number in row {
            *number /= length;
        }
    }
}

/// The exact GELU, by the error function and not by the usual guess with `tanh`.
pub(super) fn gelu(number: f32) -> f32 {
    0.5 * number * (1.0 + error_function(number * std::f32::consts::FRAC_1_SQRT_2))
}

/// The error function, to about seven digits (Abramowitz and Stegun, 7.1.26).
pub(super) fn error_function(number: f32) -> f32 {
    let size = number.abs();
    let near = (1.0 + 0.327_591_1 * size).recip();
    let factors = [1.061_405_4, -1.453_152_1, 1.421_413_8, -0.284_496_72, 0.254_829_6_f32];
    let sum = factors.into_iter().fold(0.0, |sum, factor| (sum + factor) * near);
    (1.0 - sum * (-size * size).exp()).copysign(number)
}

/// How many numbers a row has, as a number. Rows have some thousand.
pub(super) fn count(length: usize) -> f32 {
    f32::from(u16::try_from(length).unwrap_or(u16::MAX))
}
