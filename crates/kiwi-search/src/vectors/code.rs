//! Vectors as bits: the sign of each number after a rotation.
//!
//! In a learned table the first numbers of a vector vary much and the last ones little, and a bit each would count them
//! alike. A fixed rotation spreads what varies over all numbers; angles stay as they are.

/// Rounds of changing signs and mixing: two already leave no trace of the old axes.
const ROUNDS: u64 = 3;

/// Makes codes of vectors of one length.
#[derive(Debug, Clone)]
pub(crate) struct Coder {
    dimensions: usize,
    /// Bits of a code: a power of two, and whole words.
    bits: usize,
}

impl Coder {
    pub fn new(dimensions: usize) -> Self {
        Self { dimensions, bits: dimensions.next_power_of_two().max(64) }
    }

    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Bytes of a code.
    pub fn bytes(&self) -> usize {
        self.bits / 8
    }

    /// The code of a vector.
    pub fn code(&self, vector: &[f32]) -> Vec<u8> {
        Self::signs(&self.turn(vector))
    }

    /// A vector, turned as codes are.
    pub fn turn(&self, vector: &[f32]) -> Vec<f32> {
        let mut turned = vec![0.0_f32; self.bits];
        for (to, from) in turned.iter_mut().zip(vector) {
            *to = *from;
        }
        for round in 0..ROUNDS {
            change_signs(&mut turned, round);
            mix(&mut turned);
        }
        turned
    }

    /// The code of what was turned.
    pub fn signs(turned: &[f32]) -> Vec<u8> {
        let byte = |bits: &[f32]| {
            bits.iter().enumerate().fold(0_u8, |byte, (at, number)| byte | u8::from(*number > 0.0) << at)
        };
        turned.chunks(8).map(byte).collect()
    }
}

/// Changes the sign of about half the numbers, always the same ones.
fn change_signs(numbers: &mut [f32], round: u64) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(round + 1);
    for number in numbers {
        // The step of a well-known generator (xorshift): only its being fixed and irregular matters.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if state >> 63 == 1 {
            *number = -*number;
        }
    }
}

/// The Walsh-Hadamard transform, without its scale: only signs are looked at.
fn mix(numbers: &mut [f32]) {
    let mut half = 1;
    while half < numbers.len() {
        for pair in numbers.chunks_mut(2 * half) {
            let (left, right) = pair.split_at_mut(half.min(pair.len()));
            for (a, b) in left.iter_mut().zip(right) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        half *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_points_the_same_way_has_the_same_code_and_the_opposite_none_of_it() {
        let coder = Coder::new(256);
        let vector: Vec<f32> = (0..256_u16).map(|at| f32::from(at % 17) - 7.3).collect();
        let longer: Vec<f32> = vector.iter().map(|number| number * 3.0).collect();
        let opposite: Vec<f32> = vector.iter().map(|number| -number).collect();
        assert_eq!(coder.code(&vector), coder.code(&longer));
        let inverse: Vec<u8> = coder.code(&opposite).iter().map(|byte| !byte).collect();
        assert_eq!(coder.code(&vector), inverse);
        assert_eq!(coder.bytes(), 32);
    }

    #[test]
    fn one_number_spreads_over_all_bits() {
        let coder = Coder::new(256);
        let mut vector = vec![0.0; 256];
        vector[0] = 1.0;
        let ones: u32 = coder.code(&vector).iter().map(|byte| byte.count_ones()).sum();
        assert!((96..160).contains(&ones), "{ones}");
    }

    #[test]
    fn lengths_that_are_no_power_of_two_are_filled_up() {
        assert_eq!(Coder::new(384).bytes(), 64);
        assert_eq!(Coder::new(3).bytes(), 8);
    }
}
