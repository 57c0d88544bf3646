//! The text leg: words, and the fields they are kept in.

mod fields;
mod stop_words;
mod words;

pub(crate) use fields::{
    Fields, SUPPORT, Stored, category_facet, kind_facet, run_facet, tag_facet, type_facet, word_facet,
};
pub(crate) use stop_words::is_stop_word;
pub(crate) use words::{Words, flat, is_one_word, readings, register, split};
