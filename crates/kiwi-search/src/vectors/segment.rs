//! The vectors of one segment, mapped.

use tantivy::DocId;
use tantivy::directory::OwnedBytes;
use tantivy::index::SegmentReader;

use super::plugin::{corrupt, whole};
use super::processor::likenesses;
use super::row::row_bytes;
use super::{CODES, Coder, ENDS, ROWS, TOKENS, Tokens};

/// Where the tokens of a document end, as it is kept.
pub(super) const END: usize = 8;

/// Codes, rows and tokens, by document.
pub(crate) struct SegmentVectors {
    codes: OwnedBytes,
    rows: OwnedBytes,
    row: usize,
    tokens: OwnedBytes,
    ends: OwnedBytes,
}

impl SegmentVectors {
    pub fn open(reader: &SegmentReader, coder: &Coder) -> tantivy::Result<Self> {
        let row = row_bytes(coder.dimensions());
        let opened = Self {
            codes: whole(reader, CODES)?,
            rows: whole(reader, ROWS)?,
            row,
            tokens: whole(reader, TOKENS)?,
            ends: whole(reader, ENDS)?,
        };
        let documents = reader.max_doc() as usize;
        let widths =
            [(CODES, &opened.codes, coder.bytes()), (ROWS, &opened.rows, row), (ENDS, &opened.ends, END)];
        for (name, file, width) in widths {
            if file.len() != documents * width {
                return Err(corrupt(name));
            }
        }
        if opened.end(documents) != opened.tokens.len() {
            return Err(corrupt(TOKENS));
        }
        Ok(opened)
    }

    /// All codes, one after the other.
    pub fn codes(&self) -> &[u8] {
        &self.codes
    }

    /// The row of a document.
    pub fn row(&self, document: DocId) -> Option<&[u8]> {
        let start = document as usize * self.row;
        self.rows.get(start..start + self.row)
    }

    /// How alike a query and some documents are; nothing for a document that has no vector.
    pub fn likenesses(&self, query: &[f32], documents: &[DocId]) -> Vec<Option<f32>> {
        likenesses(self, query, documents)
    }

    /// The tokens of a document.
    pub fn tokens(&self, document: DocId) -> Tokens {
        let document = document as usize;
        let bytes = self.tokens.get(self.end(document)..self.end(document + 1));
        bytes.map(Tokens::read).unwrap_or_default()
    }

    /// Where the tokens of so many documents end.
    fn end(&self, documents: usize) -> usize {
        let Some(before) = documents.checked_sub(1) else { return 0 };
        let end = self.ends.get(before * END..).and_then(|rest| rest.first_chunk::<END>());
        end.and_then(|end| usize::try_from(u64::from_le_bytes(*end)).ok()).unwrap_or(0)
    }
}
