//! Sets of characters, as ranges.

const LAST: u32 = char::MAX as u32;

/// A set of characters: ranges, both ends in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Set(Vec<(u32, u32)>);

impl Set {
    pub fn one(c: char) -> Self {
        Self(vec![(u32::from(c), u32::from(c))])
    }

    pub fn any() -> Self {
        Self(vec![(0, LAST)])
    }

    /// Whether every character is in it.
    pub fn is_any(&self) -> bool {
        self.0.as_slice() == [(0, LAST)]
    }

    pub fn add(&mut self, from: char, to: char) {
        self.0.push((u32::from(from), u32::from(to)));
    }

    pub fn contains(&self, c: char) -> bool {
        let c = u32::from(c);
        self.0.iter().any(|(from, to)| (*from..=*to).contains(&c))
    }

    /// Every character that is not in it.
    pub fn complement(&self) -> Self {
        let mut ranges = self.0.clone();
        ranges.sort_unstable();
        let (mut out, mut next) = (Vec::new(), 0);
        for (from, to) in ranges {
            if from > next {
                out.push((next, from - 1));
            }
            next = next.max(to.saturating_add(1));
        }
        if next <= LAST {
            out.push((next, LAST));
        }
        Self(out)
    }

    /// The same without one character.
    pub fn without(&self, c: char) -> Self {
        let mut outside = self.complement();
        outside.add(c, c);
        outside.complement()
    }

    /// Where something changes: each range begins at the first number and ends before the second.
    pub fn borders(&self) -> impl Iterator<Item = u32> {
        self.0.iter().flat_map(|(from, to)| [*from, to.saturating_add(1)])
    }
}

/// One character for each range between neighbouring borders: no set of those that gave the borders tells two
/// characters of one range apart.
pub(super) fn representatives(borders: impl Iterator<Item = u32>) -> Vec<char> {
    let mut borders: Vec<u32> = borders.chain([0, LAST + 1]).collect();
    borders.sort_unstable();
    borders.dedup();
    let range = |pair: &[u32]| match pair {
        [from, to] => pick(*from, *to - 1),
        _ => None,
    };
    let mut picked: Vec<char> = borders.windows(2).filter_map(range).collect();
    // Whoever is shown one sees a letter where a letter will do.
    picked.sort_by_key(|c| !c.is_alphanumeric());
    picked
}

/// A character of a range, a readable one where there is one.
fn pick(from: u32, to: u32) -> Option<char> {
    let range = from..=to;
    let readable = ['x', 'a', 'z', 'n', 'e', 'X', '0', '9', '_', '-', '.'].into_iter();
    let first = (from..=to).find_map(char::from_u32);
    readable.chain('b'..='y').chain('A'..='Z').find(|c| range.contains(&u32::from(*c))).or(first)
}
