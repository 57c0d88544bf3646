//! A text as a tree whose every node knows where it stands. What JSON and YAML have in common for whoever edits them.

use serde_json::{Map, Value};
use std::ops::Range;

/// One value in a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    /// From its first byte to behind its last one that means something.
    pub(super) span: Range<usize>,
    pub(super) kind: Kind,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// Anything that holds nothing else.
    Scalar(Value),
    Sequence(Vec<Node>),
    Mapping {
        entries: Vec<Pair>,
        /// In braces, not by indentation.
        in_braces: bool,
    },
}

/// One entry of a mapping.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pair {
    pub(super) key: String,
    /// Where the key stands.
    pub(super) span: Range<usize>,
    pub(super) value: Node,
}

impl Node {
    /// The value itself.
    pub(super) fn value(&self) -> Value {
        match &self.kind {
            Kind::Scalar(value) => value.clone(),
            Kind::Sequence(items) => Value::Array(items.iter().map(Self::value).collect()),
            Kind::Mapping { entries, .. } => {
                let entries = entries.iter().map(|pair| (pair.key.clone(), pair.value.value()));
                Value::Object(entries.collect::<Map<_, _>>())
            }
        }
    }

    /// The entries of a mapping.
    pub(super) fn entries(&self) -> &[Pair] {
        match &self.kind {
            Kind::Mapping { entries, .. } => entries,
            _ => &[],
        }
    }

    /// The entry of that name.
    pub(super) fn get(&self, key: &str) -> Option<&Pair> {
        self.entries().iter().find(|pair| pair.key == key)
    }
}

/// The text with a part of it replaced.
pub(super) fn splice(text: &str, range: Range<usize>, with: &str) -> String {
    let (before, after) =
        (text.get(..range.start).unwrap_or(text), text.get(range.end..).unwrap_or_default());
    [before, with, after].concat()
}

/// Where the line of a byte starts.
pub(super) fn line_start(text: &str, offset: usize) -> usize {
    text.get(..offset).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1)
}

/// Behind the line break of the line of a byte, or the end.
pub(super) fn line_end(text: &str, offset: usize) -> usize {
    text.get(offset..).and_then(|after| after.find('\n')).map_or(text.len(), |at| offset + at + 1)
}

/// What a line starts with before its first word.
pub(super) fn indent(text: &str, offset: usize) -> &str {
    let line = text.get(line_start(text, offset)..).unwrap_or_default();
    let end = line.find(|c: char| c != ' ' && c != '\t').unwrap_or(line.len());
    line.get(..end).unwrap_or_default()
}
