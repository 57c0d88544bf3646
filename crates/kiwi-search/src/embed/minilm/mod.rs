//! A sentence encoder of the MiniLM kind, from a folder that the user names: BERT's layers, mean pooling, length 1.
//!
//! **Owns** reading `config.json`, `model.safetensors` and the vocabulary, making tokens, and the forward pass.
//!
//! **Deliberately absent**: other architectures and ways of pooling. A folder that asks for one is refused: its vectors
//! would be wrong without anybody noticing. So are padding and batches; a text is computed by itself.
//!
//! Read first: [`encoder`], which is the model itself.

mod characters;
mod config;
mod encoder;
mod matrix;
mod numbers;
mod tokens;
mod weights;

#[cfg(test)]
mod tests;

use kiwi_model::Hasher;
use std::fs;
use std::path::Path;

use super::{EmbedError, Embedder};
use config::Config;
use encoder::Encoder;
use tokens::Tokenizer;
use weights::Weights;

/// Larger files are not models of this kind, and would be read into memory.
const MAX_BYTES: u64 = 2 << 30;

/// A sentence encoder that runs here.
#[derive(Debug)]
pub struct MiniLm {
    id: String,
    tokenizer: Tokenizer,
    encoder: Encoder,
}

impl MiniLm {
    /// Reads a model from a folder.
    pub fn open(folder: &Path) -> Result<Self, EmbedError> {
        Self::read(folder)
            .map_err(|Refusal(why)| EmbedError::Unreadable { folder: folder.display().to_string(), why })
    }

    fn read(folder: &Path) -> Result<Self, Refusal> {
        let config = Config::read(folder)?;
        let bytes = file(folder, "model.safetensors")?;
        let weights = Weights::read(&bytes)?;
        let encoder = Encoder::new(&config, &weights)?;
        let tokenizer = Tokenizer::read(folder, &config)?;
        let mut hasher = Hasher::default();
        hasher.update(&bytes);
        tokenizer.digest(&mut hasher);
        let print: String = hasher.finish().hex().chars().take(8).collect();
        let id = format!("bert-{}x{}-{}-{print}", config.layers, config.hidden, config.max_tokens);
        Ok(Self { id, tokenizer, encoder })
    }

    /// What the model is given for a text, the marks of its start and end among it.
    pub fn tokens(&self, text: &str) -> Vec<u32> {
        self.tokenizer.tokens(text)
    }

    /// The vector of a text.
    pub fn vector(&self, text: &str) -> Vec<f32> {
        self.encoder.vector(&self.tokens(text))
    }
}

impl Embedder for MiniLm {
    fn id(&self) -> &str {
        &self.id
    }

    fn dimensions(&self) -> usize {
        self.encoder.dimensions()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        Ok(texts.iter().map(|text| self.vector(text)).collect())
    }
}

/// Why a folder is no model: names the file, and what is wrong with it.
#[derive(Debug)]
struct Refusal(String);

impl Refusal {
    fn of(file: &str, why: impl std::fmt::Display) -> Self {
        Self(format!("`{file}`: {why}"))
    }
}

/// The bytes of a file that must be there.
fn file(folder: &Path, name: &str) -> Result<Vec<u8>, Refusal> {
    let path = folder.join(name);
    let refused = |error: std::io::Error| Refusal::of(name, error);
    let length = fs::metadata(&path).map_err(refused)?.len();
    if length > MAX_BYTES {
        return Err(Refusal::of(name, format_args!("{length} bytes are more than {MAX_BYTES}")));
    }
    fs::read(&path).map_err(refused)
}

/// The bytes of a file that may be there.
fn optional(folder: &Path, name: &str) -> Result<Option<Vec<u8>>, Refusal> {
    if folder.join(name).exists() { file(folder, name).map(Some) } else { Ok(None) }
}
