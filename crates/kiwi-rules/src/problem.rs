//! What is wrong in a rule file, and exactly where.

use serde::Serialize;

/// A stretch of a text, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Its first byte.
    pub start: usize,
    /// The byte behind its last.
    pub end: usize,
}

impl Span {
    /// From the start of one span to the end of another.
    pub(crate) fn to(self, other: Self) -> Self {
        Self { start: self.start, end: other.end }
    }
}

/// Something wrong at a span. It becomes a [`Problem`] where the text and the name of the file are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Complaint {
    pub span: Span,
    pub message: String,
    pub hint: Option<String>,
}

impl Complaint {
    pub fn new(span: Span, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), hint: None }
    }

    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// One thing wrong in one rule file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct Problem {
    /// Which file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
    /// The line of the file with a pointer below the place.
    pub snippet: String,
}

/// How much of a long line a snippet shows on either side of the place.
const AROUND: usize = 60;

impl Problem {
    pub(crate) fn new(file: &str, text: &str, complaint: Complaint) -> Self {
        let start = floor_boundary(text, complaint.span.start);
        let end = floor_boundary(text, complaint.span.end).max(start);
        let (before, after) = text.split_at(start);
        let line = before.matches('\n').count() + 1;
        let head = before.rsplit('\n').next().unwrap_or_default();
        let tail = after.split('\n').next().unwrap_or_default();
        let column = head.chars().count() + 1;
        let width = text.get(start..end).unwrap_or_default().split('\n').next().unwrap_or_default();
        let snippet = snippet(line, head, tail, width.chars().count());
        Self {
            file: file.to_owned(),
            line,
            column,
            message: complaint.message,
            hint: complaint.hint,
            snippet,
        }
    }
}

fn snippet(line: usize, head: &str, tail: &str, width: usize) -> String {
    // Control characters could move the pointer, or the reader's terminal.
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let skipped = head.chars().count().saturating_sub(AROUND);
    let shown_head: String = head.chars().skip(skipped).map(plain).collect();
    let shown_tail: String = tail.chars().take(AROUND).map(plain).collect();
    let indent = " ".repeat(shown_head.chars().count());
    let pointer = "^".repeat(width.clamp(1, AROUND.min(shown_tail.chars().count().max(1))));
    let number = line.to_string();
    let gutter = " ".repeat(number.len());
    format!("{number} | {}\n{gutter} | {indent}{pointer}", format!("{shown_head}{shown_tail}").trim_end())
}

/// The nearest character boundary at or before an offset.
pub(crate) fn floor_boundary(text: &str, offset: usize) -> usize {
    let mut at = offset.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
