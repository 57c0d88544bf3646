//! What is kept of a document, and in which field.

use serde_json::json;
use tantivy::TantivyDocument;
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions,
};

use super::words::{WORDS, flat, split, words_of_name};
use crate::document::{Document, Item, KeyHash};
use crate::vectors::TYPE_NAME;

/// How often the words of a name count as if they stood in the text.
const NAME_WEIGHT: usize = 3;

/// The fields of the index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields {
    /// Every word of an item, those of its name more than once: what is ranked.
    pub text: Field,
    /// Its names as they are when nobody minds how they are written.
    pub flat: Field,
    /// Its kind, category, tags, type, the words of its names and what is written in one there: `kind:tool`,
    /// `category:data/etl`, `tag:x`, `type:python`, `word:git`, `run:github`, `support`.
    pub facet: Field,
    /// The hash of its key.
    pub key: Field,
    pub stamp: Field,
    /// The hash of the group that its key belongs to.
    pub group: Field,
    /// The item, as it is shown.
    pub item: Field,
    pub vector: Field,
}

impl Fields {
    /// The schema, and its fields.
    pub fn schema(dimensions: usize) -> (Schema, Self) {
        let mut schema = Schema::builder();
        let words =
            TextFieldIndexing::default().set_tokenizer(WORDS).set_index_option(IndexRecordOption::WithFreqs);
        let fields = Self {
            text: schema.add_text_field("text", TextOptions::default().set_indexing_options(words)),
            flat: schema.add_text_field("flat", STRING),
            facet: schema.add_text_field("facet", STRING),
            key: schema.add_u64_field("key", INDEXED | FAST),
            stamp: schema.add_u64_field("stamp", FAST),
            group: schema.add_u64_field("group", INDEXED),
            item: schema.add_text_field("item", STORED),
            vector: schema.add_custom_field("vector", TYPE_NAME, json!({ "dimensions": dimensions })),
        };
        (schema.build(), fields)
    }

    /// A document as the index takes it; `vector` is its code and its row.
    pub fn document(&self, document: &Document, vector: &[u8]) -> serde_json::Result<TantivyDocument> {
        let mut made = TantivyDocument::new();
        made.add_u64(self.key, KeyHash::of(&document.key).0);
        made.add_u64(self.stamp, document.stamp);
        made.add_u64(self.group, KeyHash::of(&document.group).0);
        let stored = Stored {
            key: document.key.as_str().into(),
            item: document.item.as_ref().map(std::borrow::Cow::Borrowed),
        };
        made.add_text(self.item, serde_json::to_string(&stored)?);
        let Some(item) = &document.item else { return Ok(made) };
        made.add_custom(self.vector, vector);
        self.add_words(item, &mut made);
        for facet in facets(item) {
            made.add_text(self.facet, facet);
        }
        Ok(made)
    }

    fn add_words(&self, item: &Item, made: &mut TantivyDocument) {
        for name in item.names() {
            made.add_text(self.flat, flat(name));
            // Where there is a name for people, it is the one that speaks.
            let weight = if name == item.name() { NAME_WEIGHT } else { 1 };
            for _ in 0..weight {
                made.add_text(self.text, name);
            }
        }
        // The last part of a dotted name is what people call a tool.
        if let Some((_, last)) = item.id.rsplit_once('.') {
            made.add_text(self.flat, flat(last));
        }
        made.add_text(self.text, &item.description);
        for (name, meaning) in &item.parameters {
            made.add_text(self.text, name);
            made.add_text(self.text, meaning);
        }
        for tag in &item.tags {
            made.add_text(self.text, tag);
        }
        made.add_text(self.text, &item.body);
    }
}

/// What is stored of a document.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct Stored<'a> {
    pub key: std::borrow::Cow<'a, str>,
    pub item: Option<std::borrow::Cow<'a, Item>>,
}

/// The terms by which items are told apart without ranking.
fn facets(item: &Item) -> Vec<String> {
    let mut facets = vec![kind_facet(item.kind)];
    // A category is in those above it too.
    let mut category = item.category.as_str();
    while !category.is_empty() {
        facets.push(category_facet(category));
        category = category.rsplit_once('/').map_or("", |(above, _)| above);
    }
    facets.extend(item.tags.iter().map(|tag| tag_facet(tag)));
    facets.extend(item.tool_type.iter().map(|tool_type| type_facet(tool_type)));
    facets.extend(item.written_type().map(type_facet));
    facets.extend(item.names().flat_map(words_of_name).map(|word| word_facet(&word)));
    facets.extend(item.names().flat_map(split).map(|run| run_facet(&run)));
    if item.is_support {
        facets.push(SUPPORT.to_owned());
    }
    facets.sort_unstable();
    facets.dedup();
    facets
}

/// What others run on.
pub(crate) const SUPPORT: &str = "support";

pub(crate) fn kind_facet(kind: crate::Kind) -> String {
    format!("kind:{}", kind.as_str())
}

pub(crate) fn category_facet(category: &str) -> String {
    format!("category:{}", category.trim_matches('/'))
}

pub(crate) fn tag_facet(tag: &str) -> String {
    format!("tag:{}", tag.to_lowercase())
}

pub(crate) fn word_facet(word: &str) -> String {
    format!("word:{}", word.to_lowercase())
}

/// A word of a name, or words of it that only their case tells apart.
pub(crate) fn run_facet(run: &str) -> String {
    format!("run:{}", run.to_lowercase())
}

pub(crate) fn type_facet(tool_type: &str) -> String {
    format!("type:{}", tool_type.to_lowercase())
}
