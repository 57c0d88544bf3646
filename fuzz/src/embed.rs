//! What must hold for any text that becomes a vector. Panics when it does not hold.
//!
//! Apart from the other bodies, since those are also compiled by rooms that know no search.

use kiwi_search::{Embedder, StaticEmbedder};

/// Any text has tokens that have rows, at most 512, and a vector of length 1 exactly if it has one; the same each time.
pub fn text(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let embedder = StaticEmbedder::new();
    let tokens = embedder.tokens(&text);
    assert!(tokens.len() <= 512 && tokens.iter().all(|token| *token < 37_000));
    let vector = embedder.vector(&text);
    assert_eq!(vector.len(), embedder.dimensions());
    let length = vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
    let wanted = if tokens.is_empty() { 0.0 } else { 1.0 };
    assert!((length - wanted).abs() < 1e-4, "{} tokens, and the length is {length}", tokens.len());
    assert_eq!(embedder.vector(&text), vector, "made once, made twice");
    // Spaces around a text are no part of it, and what follows the last token that counts changes nothing.
    assert_eq!(embedder.tokens(&format!(" {text} ")), tokens);
    if tokens.len() == 512 {
        assert_eq!(embedder.tokens(&format!("{text} send an email")), tokens);
    }
}
