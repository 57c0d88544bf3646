//! The tokens of a document, those of its name first.

use crate::document::Item;
use crate::embed::StaticEmbedder;

/// Tokens of a document that count: a long text has some near word for everything.
const MOST: usize = 48;
/// A token, and the number before them.
const WIDTH: usize = 2;

/// The tokens of a document as they are kept: how many belong to its name, those, then every other token once.
pub(crate) fn token_bytes(embedder: StaticEmbedder, item: &Item) -> Vec<u8> {
    let mut name = embedder.tokens(item.name());
    name.truncate(MOST);
    let mut seen: std::collections::HashSet<u16> = name.iter().copied().collect();
    let text = embedder.tokens(&item.embedded_text()).into_iter().take(MOST);
    let rest = text.filter(|token| seen.insert(*token));
    let count = u16::try_from(name.len()).unwrap_or(0);
    std::iter::once(count).chain(name.iter().copied()).chain(rest).flat_map(u16::to_le_bytes).collect()
}

/// The tokens of a document.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tokens {
    all: Vec<u16>,
    of_name: usize,
}

impl Tokens {
    pub(super) fn read(bytes: &[u8]) -> Self {
        let (numbers, _) = bytes.as_chunks::<WIDTH>();
        let mut numbers = numbers.iter().map(|bytes| u16::from_le_bytes(*bytes));
        let of_name = usize::from(numbers.next().unwrap_or(0));
        Self { all: numbers.collect(), of_name }
    }

    /// All of them.
    pub fn all(&self) -> &[u16] {
        &self.all
    }

    /// Those of its name.
    pub fn name(&self) -> &[u16] {
        self.all.get(..self.of_name).unwrap_or(&self.all)
    }
}
