//! Finding items.
//!
//! This crate owns the text index, the vector index, the embedders that run here, and the ranking that makes one list of
//! what they find. It does not know where items come from or who asks: documents are handed in, and so is the judgement
//! whether a caller may see one. It opens no connection: a remote embedder is handed in as an [`Embedder`].
//!
//! Read first: [`Index`], a folder of documents; [`search`], which ranks; [`Embedder`].

mod beside;
mod contained;
mod document;
mod embed;
mod error;
mod index;
mod rank;
mod text;
mod vectors;

pub use contained::{carried, contained};
pub use document::{Document, Item, KeyHash, Kind};
pub use embed::{EmbedError, Embedder, MiniLm, StaticEmbedder};
pub use error::SearchError;
pub use index::{Check, Counts, Index, Known, Prepared, View, Writer};
pub use rank::{Filter, Hit, Mode, Prospect, Query, Weighed, list, search, summary};
pub use vectors::Codes;
