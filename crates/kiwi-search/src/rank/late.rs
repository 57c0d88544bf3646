//! Words held against words: each word of the query looks for the one in the document that is nearest in meaning.
//!
//! A vector of a whole text blurs what is in it; here a single fitting word shows.

use crate::embed::StaticEmbedder;

/// The first numbers of a row say nearly as much as all of them.
const DIMENSIONS: usize = 64;
/// A token that was not met yet.
const UNMET: u32 = u32::MAX;

/// The words of a query, ready to be held against documents.
pub(super) struct Late {
    tokens: Vec<u16>,
    /// For each, how much it counts: the length of its row.
    weights: Vec<f32>,
    rows: Vec<[f32; DIMENSIONS]>,
    /// For each token of a document that was met, where in `near` it says how near each word of the query is.
    met: Vec<u32>,
    near: Vec<f32>,
}

impl Late {
    pub fn new(embedder: StaticEmbedder, text: &str) -> Self {
        let mut tokens = embedder.tokens(text);
        let mut seen = std::collections::HashSet::new();
        tokens.retain(|token| seen.insert(*token));
        let weights = tokens.iter().map(|token| embedder.weight(*token)).collect();
        let rows = tokens.iter().map(|token| unit(embedder, *token)).collect();
        Self { tokens, weights, rows, met: vec![UNMET; usize::from(u16::MAX) + 1], near: Vec::new() }
    }

    /// Which of its words a part of the query has.
    pub fn words_of(&self, embedder: StaticEmbedder, part: &str) -> Vec<usize> {
        let own = embedder.tokens(part);
        self.tokens.iter().enumerate().filter(|(_, token)| own.contains(token)).map(|(at, _)| at).collect()
    }

    /// How near the nearest word of a document is to each word of the query.
    pub fn nearest(&mut self, embedder: StaticEmbedder, document: &[u16]) -> Vec<f32> {
        let mut best = vec![f32::NEG_INFINITY; self.rows.len()];
        for token in document {
            let start = self.start(embedder, *token);
            for (best, near) in best.iter_mut().zip(self.near.iter().skip(start)) {
                *best = best.max(*near);
            }
        }
        if document.is_empty() {
            best.fill(0.0);
        }
        best
    }

    /// Where it says how near each word of the query is to a token.
    fn start(&mut self, embedder: StaticEmbedder, token: u16) -> usize {
        let end = self.near.len();
        let Some(place) = self.met.get_mut(usize::from(token)) else { return end };
        if *place == UNMET {
            *place = u32::try_from(end).unwrap_or(UNMET);
            let row = unit(embedder, token);
            self.near.extend(self.rows.iter().map(|word| dot(word, &row)));
        }
        *place as usize
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

/// The beginning of a token's row, of length 1.
fn unit(embedder: StaticEmbedder, token: u16) -> [f32; DIMENSIONS] {
    let mut unit = [0.0; DIMENSIONS];
    for (to, from) in unit.iter_mut().zip(embedder.row(token)) {
        *to = f32::from(from.cast_signed());
    }
    let length = unit.iter().map(|number| number * number).sum::<f32>().sqrt();
    if length > 0.0 {
        for number in &mut unit {
            *number /= length;
        }
    }
    unit
}

fn dot(a: &[f32; DIMENSIONS], b: &[f32; DIMENSIONS]) -> f32 {
    const LANES: usize = 16;
    let mut lanes = [0.0; LANES];
    for (a, b) in a.as_chunks::<LANES>().0.iter().zip(b.as_chunks::<LANES>().0) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += a * b;
        }
    }
    lanes.iter().sum()
}
