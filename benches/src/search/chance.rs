//! Numbers that look random and are the same in every run.

/// A well-known generator (splitmix64), begun from a text.
pub struct Chance(u64);

impl Chance {
    /// Begins from a text (its FNV-1a hash).
    pub fn of(text: &str) -> Self {
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self(text.bytes().fold(0xcbf2_9ce4_8422_2325, mix))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `count`.
    pub fn pick(&mut self, count: usize) -> usize {
        let count = u64::try_from(count).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % count).unwrap_or(0)
    }

    /// True so many times in a hundred.
    pub fn is_within(&mut self, percent: usize) -> bool {
        self.pick(100) < percent
    }

    /// One of several; an empty list gives the default.
    pub fn one<T: Clone + Default>(&mut self, list: &[T]) -> T {
        let at = self.pick(list.len());
        list.get(at).cloned().unwrap_or_default()
    }
}
