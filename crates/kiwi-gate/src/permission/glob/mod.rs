//! Globs as languages: which strings one matches, whether it lies inside others, whether it meets another.
//!
//! | written | matches in a path | matches in a name |
//! |---|---|---|
//! | `*` | any characters but `/` | any characters |
//! | `**` | any characters; as a whole part also no part at all | any characters |
//! | `?` | one character but `/` | one character |
//! | `[a-z]`, `[!a-z]` | one of these, or none of them, never `/` | one of these, or none of them |
//! | `\x` | `x` itself | `x` itself |
//!
//! `src/**` is the folder `src` and everything below it; `**/x` is `x` at any depth. Names (tools, programs, hosts,
//! variables, secrets) have no parts: there `*` crosses dots. Characters are compared as they are: case counts, and two
//! normal forms of one word are two words.

mod automaton;
mod contain;
mod read;
mod set;

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use contain::Witness;
pub(crate) use contain::{contains, meet};

use automaton::Automaton;

/// A glob, compiled.
#[derive(Debug, Clone)]
pub struct Glob {
    text: String,
    automaton: Automaton,
}

impl Glob {
    /// A glob of paths: `*` stops at `/`.
    pub fn path(text: &str) -> Result<Self, String> {
        Ok(Self { text: text.to_owned(), automaton: read::path(text)? })
    }

    /// A glob of names: nothing stops `*`.
    pub fn name(text: &str) -> Result<Self, String> {
        // Most names are written out, and every call brings some.
        if is_literal(text) {
            return Ok(Self::exactly(text));
        }
        Ok(Self { text: text.to_owned(), automaton: read::name(text)? })
    }

    /// Exactly this.
    pub fn exactly(text: &str) -> Self {
        let mut automaton = Automaton::new();
        text.chars().for_each(|c| automaton.letter(c));
        Self { text: text.to_owned(), automaton }
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it matches the whole string.
    pub fn matches(&self, text: &str) -> bool {
        self.automaton.matches(text.chars())
    }
}

/// A text in which no character means anything but itself.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if means_more(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Whether it is a name written out, of a length that names have.
fn is_literal(text: &str) -> bool {
    (1..=256).contains(&text.len()) && !text.chars().any(means_more)
}

fn means_more(c: char) -> bool {
    matches!(c, '*' | '?' | '[' | '\\')
}

/// The text, if nothing in it is a wildcard, with `\` taken away.
pub(crate) fn plain(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '*' | '?' | '[' => return None,
            '\\' => out.push(chars.next()?),
            other => out.push(other),
        }
    }
    Some(out)
}
