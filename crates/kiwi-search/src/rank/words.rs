//! The words of a query, and how rare each is in everything that is searched.

use std::cell::RefCell;
use tantivy::Term;
use tantivy::query::{Bm25StatisticsProvider, Bm25Weight};
use tantivy::schema::Field;

use crate::index::View;
use crate::text::{Words, split};

/// Words that count; more of them say no more.
const MOST_WORDS: usize = 64;

thread_local! {
    /// Building it reads lists of words; it is used again.
    static WORDS: RefCell<Words> = RefCell::new(Words::new());
}

/// The words of a text.
pub(super) fn words_of(text: &str) -> Vec<String> {
    WORDS.with_borrow_mut(|words| words.of(text))
}

/// The distinct words of a query.
pub(super) struct QueryWords {
    pub words: Vec<QueryWord>,
}

/// One of them.
pub(super) struct QueryWord {
    /// As it is indexed.
    pub text: String,
    /// As it was written.
    pub written: String,
    /// How many documents have it.
    pub documents: u64,
    pub weight: Bm25Weight,
}

impl QueryWords {
    pub fn of(tiers: &[&View], text: &str) -> Self {
        let statistics = Statistics::of(tiers);
        let mut words: Vec<QueryWord> = Vec::new();
        for written in split(text) {
            let Some(word) = words_of(&written.to_lowercase()).pop() else { continue };
            if words.len() < MOST_WORDS && words.iter().all(|known| known.text != word) {
                let documents = frequency(tiers, &word);
                let weight = statistics.weight(documents);
                words.push(QueryWord { text: word, written, documents, weight });
            }
        }
        Self { words }
    }
}

fn frequency(tiers: &[&View], word: &str) -> u64 {
    let of =
        |view: &&View| view.searcher.doc_freq(&Term::from_field_text(view.fields.text, word)).unwrap_or(0);
    tiers.iter().map(of).sum()
}

/// How much there is in all tiers together, so that a word counts the same wherever it is found.
struct Statistics {
    documents: u64,
    words: u64,
}

impl Statistics {
    fn of(tiers: &[&View]) -> Self {
        let everywhere = Everywhere { tiers };
        let words =
            tiers.iter().map(|view| view.searcher.total_num_tokens(view.fields.text).unwrap_or(0)).sum();
        Self { documents: everywhere.total_num_docs().unwrap_or(0), words }
    }

    #[expect(clippy::cast_precision_loss, reason = "an average")]
    fn weight(&self, documents: u64) -> Bm25Weight {
        let average = self.words as f32 / self.documents.max(1) as f32;
        Bm25Weight::for_one_term_without_explain(documents.min(self.documents), self.documents, average)
    }
}

/// The statistics of all tiers, as the text index asks for them when it searches one.
pub(super) struct Everywhere<'t> {
    pub tiers: &'t [&'t View],
}

impl Bm25StatisticsProvider for Everywhere<'_> {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        self.tiers.iter().map(|view| view.searcher.total_num_tokens(field)).sum()
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        self.tiers.iter().map(|view| view.searcher.total_num_docs()).sum()
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        self.tiers.iter().map(|view| view.searcher.doc_freq(term)).sum()
    }
}
