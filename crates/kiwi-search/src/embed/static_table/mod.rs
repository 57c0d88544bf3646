//! The built-in embedder: a table of one row for each word, made for ranking tools by what a person asks for.
//!
//! Table and vocabulary are part of the binary, and pages of them are read when a word first needs them; a process that
//! embeds nothing pays nothing. `models/tool-embed/README.md` has the format, the rules and how good it is.

mod data {
    //! What the build script knows about the table.
    include!(concat!(env!("OUT_DIR"), "/tool_embed.rs"));
}
mod mix;
mod tokens;
mod vocabulary;

#[cfg(test)]
mod tests;

use super::{EmbedError, Embedder};
use data::{DIMENSIONS, ID, ROWS};

static TABLE: &[u8] = include_bytes!("../../../models/tool-embed/table.bin");
/// Bytes before the scales.
const HEADER: usize = 32;

/// The embedder that is always there. Making one costs nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct StaticEmbedder;

impl StaticEmbedder {
    /// The embedder.
    pub const fn new() -> Self {
        Self
    }

    /// The rows of the table that a text stands for, the first 512 of them.
    pub fn tokens(&self, text: &str) -> Vec<u16> {
        tokens::tokens(text)
    }

    /// The vector of a text: of length 1, or of length 0 if no word is known.
    pub fn vector(&self, text: &str) -> Vec<f32> {
        self.together(&self.tokens(text))
    }

    /// The vector of some tokens together.
    pub fn together(&self, tokens: &[u16]) -> Vec<f32> {
        let mut sum = [0.0_f32; DIMENSIONS];
        for token in tokens {
            add(*token, &mut sum);
        }
        // Eight sums side by side: one after the other would wait for each addition.
        let mut lanes = [0.0_f32; 8];
        for chunk in sum.as_chunks::<8>().0 {
            for (lane, number) in lanes.iter_mut().zip(chunk) {
                *lane += number * number;
            }
        }
        let length = lanes.iter().sum::<f32>().sqrt();
        if length > 0.0 {
            for number in &mut sum {
                *number /= length;
            }
        }
        sum.to_vec()
    }

    /// How many rows the table has. A token is the number of one.
    pub const fn rows(&self) -> usize {
        ROWS
    }

    /// The row of a token, in steps of its scale.
    pub fn row(&self, token: u16) -> &'static [u8; DIMENSIONS] {
        row(token).map_or(&[0; DIMENSIONS], |(_, numbers)| numbers)
    }

    /// The length of a token's row: how much it counts beside others.
    pub fn weight(&self, token: u16) -> f32 {
        let Some((scale, numbers)) = row(token) else { return 0.0 };
        let squares = numbers.iter().map(|number| f32::from(number.cast_signed()).powi(2));
        scale * squares.sum::<f32>().sqrt()
    }
}

impl Embedder for StaticEmbedder {
    fn id(&self) -> &str {
        ID
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        Ok(texts.iter().map(|text| self.vector(text)).collect())
    }
}

/// A row and its scale. Tokens come from the vocabulary, which has as many words as the table has rows.
fn row(token: u16) -> Option<(f32, &'static [u8; DIMENSIONS])> {
    let (scales, rows) = TABLE.get(HEADER..)?.split_at_checked(4 * ROWS)?;
    let token = usize::from(token);
    let scale = scales.as_chunks::<4>().0.get(token)?;
    Some((f32::from_le_bytes(*scale), rows.as_chunks::<DIMENSIONS>().0.get(token)?))
}

fn add(token: u16, sum: &mut [f32; DIMENSIONS]) {
    let Some((scale, numbers)) = row(token) else { return };
    for (total, number) in sum.iter_mut().zip(numbers) {
        *total += scale * f32::from(number.cast_signed());
    }
}
