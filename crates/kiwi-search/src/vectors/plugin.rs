//! The vectors' part in writing and merging segments.

use std::any::Any;
use std::io::Write as _;
use std::ops::Range;

use tantivy::directory::{OwnedBytes, TerminatingWrite as _};
use tantivy::index::{Segment, SegmentComponent, SegmentReader};
use tantivy::indexer::doc_id_mapping::{DocIdMapping, MappingType};
use tantivy::plugin::{PluginMergeContext, PluginWriter, PluginWriterContext, SegmentPlugin};
use tantivy::schema::document::{ErasedDocument, Value};
use tantivy::schema::{Field, FieldType, Schema};
use tantivy::{DocId, TantivyDocument, TantivyError};

use super::row::row_bytes;
use super::segment::END;
use super::{CODES, Coder, ENDS, ROWS, TOKENS, TYPE_NAME};

/// Writes its files beside those of the text index.
pub(crate) struct VectorPlugin {
    coder: Coder,
}

impl VectorPlugin {
    pub fn new(coder: Coder) -> Self {
        Self { coder }
    }

    fn row(&self) -> usize {
        row_bytes(self.coder.dimensions())
    }
}

impl SegmentPlugin for VectorPlugin {
    fn extensions(&self) -> &[&str] {
        &[CODES, ROWS, TOKENS, ENDS]
    }

    fn create_writer(&self, context: &PluginWriterContext<'_>) -> tantivy::Result<Box<dyn PluginWriter>> {
        let schema = context.segment.schema();
        let field = schema.fields().find_map(|(field, entry)| {
            matches!(entry.field_type(), FieldType::Custom(custom) if custom.type_name() == TYPE_NAME)
                .then_some(field)
        });
        let field = field.ok_or_else(|| TantivyError::SchemaError("no field for vectors".into()))?;
        Ok(Box::new(Writer { field, code: self.coder.bytes(), row: self.row(), files: Files::default() }))
    }

    /// One segment after the other, without what was deleted: the order in which the text index stacks them.
    fn merge(&self, context: PluginMergeContext<'_>) -> tantivy::Result<()> {
        if context.doc_id_mapping.mapping_type() == MappingType::Shuffled {
            return Err(out_of_order());
        }
        for (name, width) in [(CODES, self.coder.bytes()), (ROWS, self.row())] {
            let mut file = context.target_segment.open_write(component(name))?;
            for reader in context.readers {
                let source = whole(reader, name)?;
                for document in reader.doc_ids_alive() {
                    let start = document as usize * width;
                    file.write_all(source.get(start..start + width).ok_or_else(|| corrupt(name))?)?;
                }
            }
            file.terminate()?;
        }
        let mut tokens = context.target_segment.open_write(component(TOKENS))?;
        let mut ends = context.target_segment.open_write(component(ENDS))?;
        let mut end = 0_u64;
        for reader in context.readers {
            let (source, places) = (whole(reader, TOKENS)?, whole(reader, ENDS)?);
            for document in reader.doc_ids_alive() {
                let own = span(&places, document).and_then(|span| source.get(span));
                let own = own.ok_or_else(|| corrupt(TOKENS))?;
                tokens.write_all(own)?;
                end += own.len() as u64;
                ends.write_all(&end.to_le_bytes())?;
            }
        }
        tokens.terminate()?;
        ends.terminate()?;
        Ok(())
    }
}

/// Where the tokens of a document are.
fn span(ends: &[u8], document: DocId) -> Option<Range<usize>> {
    let end = |at: usize| {
        let bytes = ends.get(at * END..)?.first_chunk::<END>()?;
        usize::try_from(u64::from_le_bytes(*bytes)).ok()
    };
    let document = document as usize;
    let start = if document == 0 { 0 } else { end(document - 1)? };
    Some(start..end(document)?)
}

/// What is held until a segment is written.
struct Writer {
    field: Field,
    code: usize,
    row: usize,
    files: Files,
}

#[derive(Default)]
struct Files {
    codes: Vec<u8>,
    rows: Vec<u8>,
    tokens: Vec<u8>,
    ends: Vec<u8>,
}

impl PluginWriter for Writer {
    fn add_document(
        &mut self,
        _id: DocId,
        document: &dyn ErasedDocument,
        _schema: &Schema,
    ) -> tantivy::Result<()> {
        let document = document.as_any().downcast_ref::<TantivyDocument>();
        let value = document.and_then(|document| document.get_first(self.field));
        let bytes = value.as_ref().and_then(Value::as_custom).unwrap_or_default();
        let files = &mut self.files;
        if let Some((fixed, tokens)) = bytes.split_at_checked(self.code + self.row) {
            let (code, row) = fixed.split_at(self.code);
            files.codes.extend_from_slice(code);
            files.rows.extend_from_slice(row);
            files.tokens.extend_from_slice(tokens);
        } else {
            // A document without a vector has its place all the same, so that documents and rows are counted alike.
            files.codes.resize(files.codes.len() + self.code, 0);
            files.rows.resize(files.rows.len() + self.row, 0);
        }
        let end = files.tokens.len() as u64;
        files.ends.extend_from_slice(&end.to_le_bytes());
        Ok(())
    }

    fn serialize(self: Box<Self>, segment: &Segment, order: Option<&DocIdMapping>) -> tantivy::Result<()> {
        if order.is_some() {
            return Err(out_of_order());
        }
        let Files { codes, rows, tokens, ends } = self.files;
        for (name, bytes) in [(CODES, codes), (ROWS, rows), (TOKENS, tokens), (ENDS, ends)] {
            let mut file = segment.open_write(component(name))?;
            file.write_all(&bytes)?;
            file.terminate()?;
        }
        Ok(())
    }

    fn mem_usage(&self) -> usize {
        let Files { codes, rows, tokens, ends } = &self.files;
        [codes, rows, tokens, ends].into_iter().map(Vec::capacity).sum()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// A file of a segment, mapped.
pub(super) fn whole(reader: &SegmentReader, name: &'static str) -> tantivy::Result<OwnedBytes> {
    Ok(reader.open_read(component(name))?.read_bytes()?)
}

pub(super) fn corrupt(name: &str) -> TantivyError {
    TantivyError::InternalError(format!("the file of {name} does not fit its segment"))
}

/// No index of Kiwi is sorted.
fn out_of_order() -> TantivyError {
    TantivyError::InvalidArgument("vectors are kept in the order in which they came".into())
}

fn component(name: &'static str) -> SegmentComponent {
    SegmentComponent::Custom(name.to_owned())
}
