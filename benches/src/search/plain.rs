//! The text index without anything around it: one field, its own way to make words.

use anyhow::{Context, Result};
use std::path::Path;
use std::time::{Duration, Instant};
use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, Schema, TEXT};
use tantivy::{Index, TantivyDocument, Term};

use super::build::threads;
use super::items::Items;
use crate::stats::{Samples, time};

const BUDGET: usize = 192 << 20;
const SHOWN: usize = 10;
const WARM_UP: usize = 50;

/// Builds such an index, and asks; what building took, and the times of the questions.
pub fn measure(
    folder: &Path,
    items: &Items,
    count: usize,
    questions: &[String],
) -> Result<(Duration, Samples)> {
    std::fs::create_dir_all(folder)?;
    let mut schema = Schema::builder();
    let text = schema.add_text_field("text", TEXT);
    let since = Instant::now();
    let index = Index::create_in_dir(folder, schema.build())?;
    let mut writer = index.writer_with_num_threads::<TantivyDocument>(threads(), BUDGET)?;
    for number in 0..count {
        let mut document = TantivyDocument::new();
        document.add_text(text, items.item(number).embedded_text());
        writer.add_document(document)?;
    }
    writer.commit()?;
    writer.wait_merging_threads()?;
    let built = since.elapsed();
    let searcher = index.reader()?.searcher();
    let ask = |question: &str| -> Result<usize> {
        let query = any_word(&index, text, question)?;
        Ok(searcher.search(&query, &TopDocs::with_limit(SHOWN).order_by_score())?.len())
    };
    for question in questions.iter().take(WARM_UP) {
        ask(question)?;
    }
    let mut samples = Samples::default();
    for question in questions {
        samples.push(time(|| ask(question))?.0);
    }
    Ok((built, samples))
}

/// Any word of the question may occur.
fn any_word(index: &Index, field: Field, question: &str) -> Result<BooleanQuery> {
    let mut tokenizer = index.tokenizer_for_field(field).context("no tokenizer")?;
    let mut stream = tokenizer.token_stream(question);
    let mut words: Vec<Box<dyn Query>> = Vec::new();
    while stream.advance() {
        let term = Term::from_field_text(field, &stream.token().text);
        words.push(Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs)));
    }
    Ok(BooleanQuery::union(words))
}
