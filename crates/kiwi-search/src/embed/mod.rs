//! Texts as vectors.

mod minilm;
mod static_table;

pub use minilm::MiniLm;
pub use static_table::StaticEmbedder;

use thiserror::Error;

/// Makes vectors of texts. Vectors of one embedder can be compared with each other, and with no others.
pub trait Embedder: Send + Sync {
    /// What tells its vectors from those of any other embedder: changes when its vectors would.
    fn id(&self) -> &str;

    /// How many numbers a vector has.
    fn dimensions(&self) -> usize;

    /// One vector for each text, of length 1 (of length 0 where a text has no word that is known).
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError>;
}

/// Why there is no vector.
#[derive(Debug, Error)]
pub enum EmbedError {
    /// The folder of a model does not hold one that can be read.
    #[error("no model can be read from `{folder}`: {why}")]
    Unreadable {
        /// The folder.
        folder: String,
        /// What is wrong with it.
        why: String,
    },
    /// A remote embedder gave no vectors.
    #[error("the embedder `{id}` did not answer: {why}")]
    NoAnswer {
        /// Which.
        id: String,
        /// What happened.
        why: String,
    },
}
