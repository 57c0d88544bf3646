//! A text as rows of the table, in one pass that holds a few dozen bytes whatever the text.

use std::ops::ControlFlow;
use unicode_normalization::char::{canonical_combining_class, decompose_compatible};

use super::data::LONGEST;
use super::vocabulary;

/// What comes after these adds nothing to a vector, and a text may be as long as it likes.
pub(super) const MAX_TOKENS: usize = 512;
/// More of a part than any that is looked up.
const KEPT: usize = 41;

/// The rows of a text.
pub(super) fn tokens(text: &str) -> Vec<u16> {
    let mut reader = Reader::default();
    for character in text.chars() {
        if reader.character(character).is_break() {
            break;
        }
    }
    reader.end_run();
    reader.rows.truncate(MAX_TOKENS);
    reader.rows
}

/// Reads characters; a run of Latin letters and digits is looked up whole, and else in its parts.
#[derive(Default)]
struct Reader {
    rows: Vec<u16>,
    /// The run so far, while it may still be one word of the vocabulary.
    run: Vec<u8>,
    /// The run turned out too long for that: its parts are read as they come.
    is_long: bool,
    part: Part,
}

impl Reader {
    fn character(&mut self, character: char) -> ControlFlow<()> {
        if character.is_ascii() {
            self.byte(character);
        } else {
            // Letter by letter is enough: normalising would also bring marks into order, and they are dropped.
            decompose_compatible(character, |piece| {
                if canonical_combining_class(piece) == 0 {
                    self.byte(piece);
                }
            });
        }
        if self.rows.len() >= MAX_TOKENS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn byte(&mut self, character: char) {
        match u8::try_from(character) {
            Ok(byte) if byte.is_ascii_alphanumeric() => {
                if self.is_long {
                    self.part.push(byte, &mut self.rows);
                } else if self.run.len() < LONGEST {
                    self.run.push(byte);
                } else {
                    self.is_long = true;
                    self.run_in_parts();
                    self.part.push(byte, &mut self.rows);
                }
            }
            _ => self.end_run(),
        }
    }

    fn run_in_parts(&mut self) {
        for byte in self.run.drain(..) {
            self.part.push(byte, &mut self.rows);
        }
    }

    fn end_run(&mut self) {
        if !self.run.is_empty() {
            if let Some(row) = whole(&self.run) {
                self.rows.push(row);
                self.run.clear();
                return;
            }
            self.run_in_parts();
        }
        self.is_long = false;
        self.part.end(&mut self.rows);
    }
}

/// The row of a whole run, whatever its case.
fn whole(run: &[u8]) -> Option<u16> {
    let mut lower = [0; LONGEST];
    let lower = lower.get_mut(..run.len())?;
    for (to, from) in lower.iter_mut().zip(run) {
        *to = from.to_ascii_lowercase();
    }
    vocabulary::word(lower)
}

/// The part of a run that is being read. Parts end at camel-case borders.
#[derive(Default)]
struct Part {
    /// Its first bytes, in lower case.
    kept: Vec<u8>,
    /// How many bytes it has.
    length: usize,
    /// The last byte, in lower case: it may turn out to begin the next part.
    last: u8,
    shape: Shape,
}

/// What a part consists of so far.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Shape {
    #[default]
    Empty,
    /// Nothing but capitals.
    Capitals,
    /// Capitals and digits right after them.
    Numbered,
    /// At most one capital, and small letters and digits.
    Word,
}

impl Part {
    fn push(&mut self, byte: u8, rows: &mut Vec<u16>) {
        let is_capital = byte.is_ascii_uppercase();
        let next = match self.shape {
            Shape::Empty | Shape::Capitals if is_capital => Shape::Capitals,
            Shape::Capitals if self.length > 1 && byte.is_ascii_digit() => Shape::Numbered,
            Shape::Capitals if self.length > 1 => {
                // `HTTPServer`: the last capital belongs to what follows.
                let last = self.last;
                self.length -= 1;
                self.kept.truncate(self.length);
                self.end(rows);
                self.keep(last);
                Shape::Word
            }
            Shape::Numbered if byte.is_ascii_digit() => Shape::Numbered,
            Shape::Empty | Shape::Capitals => Shape::Word,
            Shape::Word if !is_capital => Shape::Word,
            Shape::Word | Shape::Numbered => {
                self.end(rows);
                if is_capital { Shape::Capitals } else { Shape::Word }
            }
        };
        self.shape = next;
        self.keep(byte);
    }

    fn keep(&mut self, byte: u8) {
        self.last = byte.to_ascii_lowercase();
        if self.length < KEPT {
            self.kept.push(self.last);
        }
        self.length += 1;
    }

    fn end(&mut self, rows: &mut Vec<u16>) {
        // One that is longer than what was kept is longer than any that is looked up.
        vocabulary::pieces(&self.kept, rows);
        self.kept.clear();
        self.length = 0;
        self.shape = Shape::Empty;
    }
}
