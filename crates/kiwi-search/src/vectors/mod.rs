//! The vector leg: one code of bits, one row of bytes and the tokens of each document, in files of the text index's own
//! segments.
//!
//! The segments are written, merged, deleted from and committed by the text index, so a vector is there exactly when its
//! document is; nothing here has to be kept in step.

mod bound;
mod code;
mod codes;
mod near;
mod plugin;
mod processor;
mod row;
mod segment;
mod tokens;

pub use codes::Codes;

pub(crate) use code::Coder;
pub(crate) use near::{Wanted, nearest};
pub(crate) use plugin::VectorPlugin;
pub(crate) use processor::fetch_ahead;
pub(crate) use row::pack;
pub(crate) use segment::SegmentVectors;
pub(crate) use tokens::{Tokens, token_bytes};

/// The name by which the schema knows the field.
pub(crate) const TYPE_NAME: &str = "kiwi.vector";
/// The files of a segment: bits that are scanned, rows that are looked at, tokens and where those of each document end.
const CODES: &str = "codes";
const ROWS: &str = "rows";
const TOKENS: &str = "tokens";
const ENDS: &str = "ends";
