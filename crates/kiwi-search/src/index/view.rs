//! One state of an index, as it is searched.

use std::path::PathBuf;
use std::sync::Arc;
use tantivy::columnar::Column;
use tantivy::schema::{IndexRecordOption, Value};
use tantivy::{DocAddress, DocId, DocSet as _, Searcher, TERMINATED, TantivyDocument, Term};

use super::{Index, Known, Mark};
use crate::document::{Item, KeyHash, Kind};
use crate::embed::Embedder;
use crate::error::SearchError;
use crate::text::{Fields, SUPPORT, Stored, kind_facet};
use crate::vectors::{Coder, SegmentVectors};

/// Documents whose keys and stamps are read at a time.
const AT_ONCE: usize = 4096;

/// What one commit made visible. It stays as it is while others go on writing.
pub struct View {
    pub(crate) fields: Fields,
    pub(crate) searcher: Searcher,
    pub(crate) vectors: Vec<SegmentVectors>,
    pub(crate) coder: Coder,
    pub(crate) embedder: Arc<dyn Embedder>,
    keys: Vec<(Column<u64>, Column<u64>)>,
    folder: Option<PathBuf>,
    is_complete: bool,
    pub(super) mark: Option<Mark>,
}

/// How much there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Items that can be found.
    pub items: u64,
    /// What lies where items lie and is none.
    pub refused: u64,
}

impl View {
    pub(super) fn open(
        index: &Index,
        searcher: Searcher,
        is_complete: bool,
        mark: Option<Mark>,
    ) -> tantivy::Result<Self> {
        let readers = searcher.segment_readers();
        let vectors = readers
            .iter()
            .map(|reader| SegmentVectors::open(reader, &index.coder))
            .collect::<tantivy::Result<_>>()?;
        let keys = readers
            .iter()
            .map(|reader| Ok((reader.fast_fields().u64("key")?, reader.fast_fields().u64("stamp")?)))
            .collect::<tantivy::Result<_>>()?;
        Ok(Self {
            fields: index.fields,
            searcher,
            vectors,
            coder: index.coder.clone(),
            embedder: Arc::clone(&index.embedder),
            keys,
            folder: index.folder.clone(),
            is_complete,
            mark,
        })
    }

    /// Whether everything that was there has been indexed.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.searcher.num_docs()
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is indexed, and in which state it was.
    pub fn known(&self) -> Known {
        let mut known = Known::with_capacity(usize::try_from(self.len()).unwrap_or(0));
        for (reader, (keys, stamps)) in self.searcher.segment_readers().iter().zip(&self.keys) {
            let documents: Vec<DocId> = reader.doc_ids_alive().collect();
            for documents in documents.chunks(AT_ONCE) {
                let mut own_keys = vec![None; documents.len()];
                let mut own_stamps = own_keys.clone();
                keys.first_vals(documents, &mut own_keys);
                stamps.first_vals(documents, &mut own_stamps);
                for (key, stamp) in own_keys.into_iter().zip(own_stamps) {
                    if let (Some(key), Some(stamp)) = (key, stamp) {
                        known.insert(KeyHash(key), stamp);
                    }
                }
            }
        }
        known
    }

    /// The same for what belongs to one group.
    pub fn known_in(&self, group: &str) -> Result<Known, SearchError> {
        let term = Term::from_field_u64(self.fields.group, KeyHash::of(group).0);
        let mut known = Known::default();
        for (reader, (keys, stamps)) in self.searcher.segment_readers().iter().zip(&self.keys) {
            let postings = reader
                .inverted_index(self.fields.group)
                .and_then(|index| Ok(index.read_postings(&term, IndexRecordOption::Basic)?))
                .map_err(|error| self.damaged(&error))?;
            let Some(mut postings) = postings else { continue };
            while postings.doc() != TERMINATED {
                let document = postings.doc();
                postings.advance();
                if let (Some(key), Some(stamp)) = (keys.first(document), stamps.first(document))
                    && !reader.is_deleted(document)
                {
                    known.insert(KeyHash(key), stamp);
                }
            }
        }
        Ok(known)
    }

    /// Items, and what is none: that has no words, not even a name.
    pub fn counts(&self) -> Result<Counts, SearchError> {
        let mut counts = Counts::default();
        for reader in self.searcher.segment_readers() {
            let norms =
                reader.get_fieldnorms_reader(self.fields.text).map_err(|error| self.damaged(&error))?;
            for document in reader.doc_ids_alive() {
                let count =
                    if norms.fieldnorm(document) > 0 { &mut counts.items } else { &mut counts.refused };
                *count += 1;
            }
        }
        Ok(counts)
    }

    /// What is indexed under a key: an item, or that there is none to index.
    pub fn at(&self, key: KeyHash) -> Option<Option<Item>> {
        let term = Term::from_field_u64(self.fields.key, key.0);
        for (segment, reader) in (0..).zip(self.searcher.segment_readers()) {
            let index = reader.inverted_index(self.fields.key).ok()?;
            let Some(mut postings) = index.read_postings(&term, IndexRecordOption::Basic).ok()? else {
                continue;
            };
            while postings.doc() != TERMINATED {
                if !reader.is_deleted(postings.doc()) {
                    return self.stored(DocAddress::new(segment, postings.doc())).ok().map(|(_, item)| item);
                }
                postings.advance();
            }
        }
        None
    }

    /// How many items of a kind there are, what only others run on aside. Deleted ones may count until they are dropped.
    pub fn count(&self, kind: Kind) -> u64 {
        let with = |facet: &str| {
            self.searcher.doc_freq(&Term::from_field_text(self.fields.facet, facet)).unwrap_or(0)
        };
        let support = if kind == Kind::Tool { with(SUPPORT) } else { 0 };
        with(&kind_facet(kind)).saturating_sub(support)
    }

    /// An error that came up while looking into it.
    pub(crate) fn damaged(&self, error: &dyn std::fmt::Display) -> SearchError {
        SearchError::damaged(self.folder.as_deref().unwrap_or("memory".as_ref()), error)
    }

    /// The state in which a document was indexed.
    pub(crate) fn stamp(&self, address: DocAddress) -> Option<u64> {
        self.keys.get(address.segment_ord as usize)?.1.first(address.doc_id)
    }

    /// What is stored of a document.
    pub(crate) fn stored(&self, address: DocAddress) -> Result<(String, Option<Item>), SearchError> {
        let document: TantivyDocument = self.searcher.doc(address).map_err(|error| self.damaged(&error))?;
        let text = document.get_first(self.fields.item);
        let text = text.as_ref().and_then(Value::as_str).unwrap_or_default();
        let stored: Stored<'_> = serde_json::from_str(text).map_err(|error| self.damaged(&error))?;
        Ok((stored.key.into_owned(), stored.item.map(std::borrow::Cow::into_owned)))
    }
}
