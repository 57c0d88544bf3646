//! Changing an index.

use std::fs::File;
use tantivy::indexer::{IndexWriter, LogMergePolicy};
use tantivy::{TantivyDocument, Term};

use super::{Index, Known, Payload, turn};
use crate::document::{Document, KeyHash};
use crate::embed::StaticEmbedder;
use crate::error::SearchError;
use crate::vectors::{pack, token_bytes};

/// What a writer holds before it makes a segment of it.
const LITTLE: usize = 20 << 20;
const MUCH: usize = 192 << 20;
/// More documents than this are much.
const MANY: usize = 5_000;
/// Deleted documents are dropped when they are this part of a segment.
const DEAD: f32 = 0.25;

/// The one that may write. Nothing is visible before [`Writer::commit`].
pub struct Writer<'i> {
    index: &'i Index,
    known: Known,
    inner: Option<IndexWriter<TantivyDocument>>,
    expected: usize,
    _turn: Option<File>,
}

impl<'i> Writer<'i> {
    pub(super) fn begin(index: &'i Index) -> Result<Self, SearchError> {
        let turn = index.folder.as_deref().map(turn).transpose()?;
        // Others may have written while this one waited.
        let known = index.view()?.known();
        Ok(Self { index, known, inner: None, expected: 0, _turn: turn })
    }

    /// What is indexed now.
    pub fn known(&self) -> &Known {
        &self.known
    }

    /// Says how much is to come.
    pub fn expect(&mut self, documents: usize) {
        self.expected = documents;
    }

    /// Adds what was prepared, in place of what has the same keys.
    pub fn add(&mut self, prepared: Vec<Prepared>) -> Result<(), SearchError> {
        for Prepared { key, document } in prepared {
            // A document that is new need not be looked for: deleting is what takes time.
            if self.known.insert(key, 0) {
                self.forget(key)?;
            }
            let index = self.index;
            self.writer()?.add_document(document).map_err(|error| index.judged(error))?;
        }
        Ok(())
    }

    /// Takes a document out.
    pub fn forget(&mut self, key: KeyHash) -> Result<(), SearchError> {
        let term = Term::from_field_u64(self.index.fields.key, key.0);
        self.writer()?.delete_term(term);
        Ok(())
    }

    /// Makes everything so far visible, durably and at once.
    pub fn commit(&mut self, complete: bool) -> Result<(), SearchError> {
        let index = self.index;
        let payload = serde_json::to_string(&Payload { complete }).unwrap_or_default();
        let mut prepared = self.writer()?.prepare_commit().map_err(|error| index.judged(error))?;
        prepared.set_payload(&payload);
        prepared.commit().map_err(|error| index.judged(error))?;
        Ok(())
    }

    /// Waits until what goes on in the background is done.
    pub fn finish(self) -> Result<(), SearchError> {
        match self.inner {
            Some(writer) => writer.wait_merging_threads().map_err(|error| self.index.judged(error)),
            None => Ok(()),
        }
    }

    fn writer(&mut self) -> Result<&mut IndexWriter<TantivyDocument>, SearchError> {
        let writer = if let Some(writer) = self.inner.take() {
            writer
        } else {
            self.index.check_before_change()?;
            let budget = if self.expected > MANY { MUCH } else { LITTLE };
            let made = self.index.tantivy.writer_with_num_threads(1, budget);
            let writer = made.map_err(|error| self.index.judged(error))?;
            let mut policy = LogMergePolicy::default();
            policy.set_del_docs_ratio_before_merge(DEAD);
            writer.set_merge_policy(Box::new(policy));
            // One that was killed while it committed left files whose names this one would give again.
            writer.garbage_collect_files().wait().map_err(|error| self.index.judged(error))?;
            writer
        };
        Ok(self.inner.insert(writer))
    }
}

impl Index {
    /// Makes documents ready to be added. They are embedded here, so several threads may do it at once.
    pub fn prepare(&self, documents: &[Document]) -> Result<Vec<Prepared>, SearchError> {
        let texts: Vec<String> =
            documents.iter().filter_map(|it| it.item.as_ref()).map(crate::Item::embedded_text).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let mut vectors = self.embedder.embed(&texts)?.into_iter();
        let damaged = |error: serde_json::Error| {
            SearchError::damaged(self.folder.as_deref().unwrap_or("memory".as_ref()), &error)
        };
        let prepare = |document: &Document| {
            let vector = document.item.as_ref().and_then(|_| vectors.next()).unwrap_or_default();
            let mut bytes = Vec::new();
            if let Some(item) = &document.item {
                bytes.extend(self.coder.code(&vector));
                bytes.extend(pack(&vector));
                bytes.extend(token_bytes(StaticEmbedder::new(), item));
            }
            let made = self.fields.document(document, &bytes).map_err(damaged)?;
            Ok(Prepared { key: KeyHash::of(&document.key), document: made })
        };
        documents.iter().map(prepare).collect()
    }
}

/// A document that only has to be added.
pub struct Prepared {
    key: KeyHash,
    document: TantivyDocument,
}
