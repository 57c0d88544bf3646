//! A query, ready to be held against documents: the whole of it, and each of its clauses.

use super::late::Late;
use super::parts::clauses;
use super::words::QueryWords;
use super::{Mode, words};
use crate::embed::StaticEmbedder;
use crate::error::SearchError;
use crate::index::View;

/// What is asked.
pub(super) struct Asked {
    /// As it was asked.
    pub text: String,
    pub words: QueryWords,
    pub late: Late,
    /// The whole first.
    pub parts: Vec<Part>,
}

/// The whole query, or one of its clauses.
pub(super) struct Part {
    /// Which words of the query it has.
    pub words: Vec<usize>,
    /// Its vector, for each tier.
    pub vectors: Vec<Vec<f32>>,
    /// Its vector by the built-in table, which names are held against.
    pub plain: Vec<f32>,
    /// Which of the query's tokens it has.
    pub tokens: Vec<usize>,
}

impl Asked {
    pub fn new(tiers: &[&View], text: String, mode: Mode) -> Result<Self, SearchError> {
        let embedder = StaticEmbedder::new();
        let query_words = QueryWords::of(tiers, &text);
        let late = Late::new(embedder, &text);
        let clauses = if mode == Mode::Hybrid { clauses(&text) } else { Vec::new() };
        let mut parts = Vec::with_capacity(1 + clauses.len());
        for part in std::iter::once(text.as_str()).chain(clauses.iter().map(String::as_str)) {
            let own = words::words_of(part);
            let has = |(at, word): (usize, &words::QueryWord)| own.contains(&word.text).then_some(at);
            parts.push(Part {
                words: query_words.words.iter().enumerate().filter_map(has).collect(),
                vectors: embed(tiers, part, mode)?,
                plain: embedder.vector(part),
                tokens: late.words_of(embedder, part),
            });
        }
        Ok(Self { text, words: query_words, late, parts })
    }
}

/// A text's vector for each tier: those of one embedder are made once.
fn embed(tiers: &[&View], text: &str, mode: Mode) -> Result<Vec<Vec<f32>>, SearchError> {
    let mut vectors: Vec<Vec<f32>> = Vec::with_capacity(tiers.len());
    for (number, view) in tiers.iter().enumerate() {
        let same = tiers.iter().take(number).position(|other| other.embedder.id() == view.embedder.id());
        let vector = match same.and_then(|at| vectors.get(at)) {
            Some(vector) => vector.clone(),
            None if mode == Mode::Text => Vec::new(),
            None => view.embedder.embed(&[text])?.pop().unwrap_or_default(),
        };
        vectors.push(vector);
    }
    Ok(vectors)
}
