//! Codes in memory, for whoever keeps vectors elsewhere and wants to know which of them to look at.

use super::Coder;
use super::bound::bound;
use super::processor::differing_least;

/// The codes of numbered vectors, all of one length.
#[derive(Debug)]
pub struct Codes {
    coder: Coder,
    bytes: Vec<u8>,
}

impl Codes {
    /// None yet, of vectors of this length.
    pub fn new(dimensions: usize) -> Self {
        Self { coder: Coder::new(dimensions), bytes: Vec::new() }
    }

    /// Notes a vector under a number. Numbers in between that have none yet have the code of nothing.
    pub fn set(&mut self, number: usize, vector: &[f32]) {
        let width = self.coder.bytes();
        if self.bytes.len() < (number + 1) * width {
            self.bytes.resize((number + 1) * width, 0);
        }
        let places = self.bytes.iter_mut().skip(number * width);
        places.zip(self.coder.code(vector)).for_each(|(place, byte)| *place = byte);
    }

    /// The numbers of about so many whose codes differ least from a vector's, in their order; of all of them where
    /// there are no more.
    pub fn around(&self, vector: &[f32], wanted: usize) -> Vec<u32> {
        let code = self.coder.code(vector);
        let bound = bound(std::iter::once(self.bytes.as_slice()), &code, wanted);
        let mut found = Vec::with_capacity(wanted);
        differing_least(&self.bytes, &code, bound, &mut found);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that are like no others.
    fn vector(number: u16) -> Vec<f32> {
        (0..256_u16)
            .map(|at| (f32::from(number) * 1.7 + f32::from(at) * (f32::from(number) + 0.3)).sin())
            .collect()
    }

    #[test]
    fn the_same_vector_is_always_among_those_around_it() {
        let mut codes = Codes::new(256);
        assert_eq!(codes.around(&vector(0), 3), Vec::<u32>::new());
        for number in 0..1000_u16 {
            codes.set(number.into(), &vector(number));
        }
        for number in (0..1000_u16).step_by(37) {
            let around = codes.around(&vector(number), 10);
            assert!(around.len() >= 10 && around.len() < 1000, "{}", around.len());
            assert!(around.contains(&number.into()) && around.is_sorted());
        }
        assert_eq!(codes.around(&vector(7), 5000).len(), 1000);
        codes.set(7, &vector(2000));
        assert_eq!(codes.around(&vector(2000), 1), [7]);
    }
}
