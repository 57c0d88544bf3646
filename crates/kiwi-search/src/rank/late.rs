//! Words held against words: each word of the query looks for the one in the document that is nearest in meaning.
//!
//! A vector of a whole text blurs what is in it; here a single fitting word shows.

use super::dot::{LANES, dot};
use crate::embed::StaticEmbedder;
use crate::vectors::fetch_ahead;

/// The first numbers of a row say nearly as much as all of them.
const DIMENSIONS: usize = 64;
/// A token that was not met yet.
const UNMET: u16 = u16::MAX;

/// Some words of the query, side by side: for each number of a row, that number of each of them.
type Group = [[f32; LANES]; DIMENSIONS];

/// The words of a query, ready to be held against documents.
pub(super) struct Late {
    tokens: Vec<u16>,
    /// For each, how much it counts: the length of its row.
    weights: Vec<f32>,
    groups: Vec<Group>,
}

/// What was found out about the tokens of documents: documents have many in common.
pub(super) struct Met<'l> {
    late: &'l Late,
    embedder: StaticEmbedder,
    /// For each token that was met, which of those in `near` it is.
    places: Vec<u16>,
    /// For each of them, how near each word of the query is: as many as there are groups.
    near: Vec<[f32; LANES]>,
}

impl Late {
    pub fn new(embedder: StaticEmbedder, text: &str) -> Self {
        let mut tokens = embedder.tokens(text);
        let mut seen = std::collections::HashSet::new();
        tokens.retain(|token| seen.insert(*token));
        let weights = tokens.iter().map(|token| embedder.weight(*token)).collect();
        let groups = tokens.chunks(LANES).map(|tokens| group(embedder, tokens)).collect();
        Self { tokens, weights, groups }
    }

    /// Which of its words a part of the query has.
    pub fn words_of(&self, embedder: StaticEmbedder, part: &str) -> Vec<usize> {
        let own = embedder.tokens(part);
        self.tokens.iter().enumerate().filter(|(_, token)| own.contains(token)).map(|(at, _)| at).collect()
    }

    /// Ready to be held against documents; no token was met yet.
    pub fn met(&self, embedder: StaticEmbedder) -> Met<'_> {
        Met { late: self, embedder, places: vec![UNMET; embedder.rows()], near: Vec::new() }
    }

    /// What the nearest words come to for some words of the query.
    pub fn mean(&self, words: &[usize], nearest: &[f32]) -> f32 {
        let (mut sum, mut weight) = (0.0, 0.0);
        for word in words {
            if let (Some(own), Some(near)) = (self.weights.get(*word), nearest.get(*word)) {
                sum += own * near;
                weight += own;
            }
        }
        if weight > 0.0 { sum / weight } else { 0.0 }
    }
}

impl Met<'_> {
    /// How near the nearest word of a document is to each word of the query.
    pub fn nearest(&mut self, document: &[u16]) -> Vec<f32> {
        // Rows lie here and there: all that will be needed are asked for at once.
        for token in document {
            if self.places.get(usize::from(*token)) == Some(&UNMET) {
                fetch_ahead(self.embedder.row(*token).get(..DIMENSIONS).unwrap_or_default());
            }
        }
        let nothing = if document.is_empty() { 0.0 } else { f32::NEG_INFINITY };
        let mut best = vec![[nothing; LANES]; self.late.groups.len()];
        for token in document {
            for (best, near) in best.iter_mut().zip(self.near(*token)) {
                for (best, near) in best.iter_mut().zip(near) {
                    *best = if *near > *best { *near } else { *best };
                }
            }
        }
        best.into_iter().flatten().collect()
    }

    /// How near each word of the query is to a token.
    fn near(&mut self, token: u16) -> &[[f32; LANES]] {
        let (end, many) = (self.near.len(), self.late.groups.len().max(1));
        let Some(place) = self.places.get_mut(usize::from(token)) else { return &[] };
        if *place == UNMET {
            *place = u16::try_from(end / many).unwrap_or(UNMET);
            let row = unit(self.embedder, token);
            self.near.extend(self.late.groups.iter().map(|group| products(&row, group)));
        }
        self.near.chunks(many).nth(usize::from(*place)).unwrap_or_default()
    }
}

/// The products of a row with each word of a group.
fn products(row: &[f32; DIMENSIONS], group: &Group) -> [f32; LANES] {
    let mut products = [0.0; LANES];
    for (number, words) in row.iter().zip(group) {
        for (product, word) in products.iter_mut().zip(words) {
            *product += number * word;
        }
    }
    products
}

/// The rows of some words, side by side.
fn group(embedder: StaticEmbedder, tokens: &[u16]) -> Group {
    let mut group = [[0.0; LANES]; DIMENSIONS];
    for (at, token) in tokens.iter().enumerate() {
        for (words, number) in group.iter_mut().zip(unit(embedder, *token)) {
            if let Some(place) = words.get_mut(at) {
                *place = number;
            }
        }
    }
    group
}

/// The beginning of a token's row, of length 1.
fn unit(embedder: StaticEmbedder, token: u16) -> [f32; DIMENSIONS] {
    let mut unit = [0.0; DIMENSIONS];
    for (to, from) in unit.iter_mut().zip(embedder.row(token)) {
        *to = f32::from(from.cast_signed());
    }
    let length = dot(&unit, &unit).sqrt();
    if length > 0.0 {
        for number in &mut unit {
            *number /= length;
        }
    }
    unit
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same word by word, with nothing side by side and nothing remembered.
    fn plainly(embedder: StaticEmbedder, word: u16, document: &[u16]) -> f32 {
        let product = |token: &u16| {
            let (a, b) = (unit(embedder, word), unit(embedder, *token));
            a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>()
        };
        document.iter().map(product).fold(f32::NEG_INFINITY, f32::max)
    }

    #[test]
    fn words_side_by_side_are_as_near_as_one_by_one() {
        let embedder = StaticEmbedder::new();
        let long = "send a mail with the weather report of tomorrow to every customer in the city whose order \
                    was late last week and book a table for two near the station before the train leaves";
        for text in ["weather", long] {
            let late = Late::new(embedder, text);
            let mut met = late.met(embedder);
            // The second and the third document meet words that were met before.
            for document in
                ["get the forecast for a city", "forecast of rain", "reserve a seat, get a forecast"]
            {
                let tokens = embedder.tokens(document);
                let nearest = met.nearest(&tokens);
                for (word, near) in late.tokens.iter().zip(&nearest) {
                    let plain = plainly(embedder, *word, &tokens);
                    assert!((near - plain).abs() < 1e-4, "{document}: {near} {plain}");
                }
            }
            assert!(met.nearest(&[]).iter().all(|near| *near == 0.0));
        }
        assert!(Late::new(embedder, long).groups.len() > 1, "more words than lie side by side");
    }
}
