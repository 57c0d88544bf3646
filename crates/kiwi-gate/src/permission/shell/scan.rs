//! Words, quotes and expansions of the POSIX shell. Where shells differ, nothing is guessed: it is refused.

use super::parse::{End, Parser};
use super::syntax::Word;

/// A word while it is read.
#[derive(Default)]
pub(super) struct Draft {
    text: String,
    /// How many characters of `text` are certain, once something uncertain was met.
    certain: Option<usize>,
    is_split: bool,
    /// Whether any part of it was quoted, even an empty one.
    pub is_quoted: bool,
    /// Whether a bare `[` was met, which a `]` makes a pattern.
    has_bracket: bool,
}

impl Draft {
    fn push(&mut self, c: char) {
        self.text.push(c);
    }

    fn open(&mut self, is_split: bool) {
        self.certain.get_or_insert(self.text.len());
        self.is_split |= is_split;
    }

    /// The text if it is certain and stands there without quotes: only so it can be a keyword.
    pub fn bare(&self) -> Option<&str> {
        (!self.is_quoted && self.certain.is_none()).then_some(self.text.as_str())
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.certain.is_none() && !self.is_quoted
    }

    pub fn finish(self) -> Word {
        match self.certain {
            None => Word::Fixed(self.text),
            Some(at) => {
                let prefix = self.text.get(..at).unwrap_or_default().to_owned();
                Word::Open { prefix, is_split: self.is_split }
            }
        }
    }
}

/// Characters that end a word.
pub(super) fn ends_word(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')')
}

impl Parser {
    /// Reads one word. It may be empty where none begins here.
    pub(super) fn word(&mut self) -> Result<Draft, String> {
        let mut draft = Draft::default();
        self.word_at = self.here();
        while let Some(c) = self.peek() {
            match c {
                c if ends_word(c) => break,
                '\\' => {
                    self.next();
                    match self.next() {
                        // A line that goes on.
                        Some('\n') => {}
                        Some(c) => {
                            draft.is_quoted = true;
                            draft.push(c);
                        }
                        None => return Err("it ends in `\\`".into()),
                    }
                }
                '\'' => {
                    self.next();
                    draft.is_quoted = true;
                    loop {
                        match self.next() {
                            Some('\'') => break,
                            Some(c) => draft.push(c),
                            None => return Err("a quote is never closed".into()),
                        }
                    }
                }
                '"' => {
                    self.next();
                    draft.is_quoted = true;
                    self.quoted(&mut draft)?;
                }
                '$' => self.dollar(&mut draft, false)?,
                '`' => self.backticks(&mut draft, false)?,
                _ => {
                    self.next();
                    bare(c, &mut draft, self.peek())?;
                }
            }
        }
        Ok(draft)
    }

    /// The inside of double quotes, up to and with the closing one.
    fn quoted(&mut self, draft: &mut Draft) -> Result<(), String> {
        loop {
            match self.peek().ok_or("a quote is never closed")? {
                '"' => {
                    self.next();
                    return Ok(());
                }
                '\\' => {
                    self.next();
                    match self.next() {
                        Some('\n') => {}
                        Some(c @ ('$' | '`' | '"' | '\\')) => draft.push(c),
                        Some(c) => {
                            draft.push('\\');
                            draft.push(c);
                        }
                        None => return Err("a quote is never closed".into()),
                    }
                }
                '$' => self.dollar(draft, true)?,
                '`' => self.backticks(draft, true)?,
                c => {
                    self.next();
                    draft.push(c);
                }
            }
        }
    }

    /// The text of a here-document in which expansions happen.
    pub(super) fn document(&mut self) -> Result<(), String> {
        let mut draft = Draft::default();
        while let Some(c) = self.peek() {
            match c {
                '\\' => {
                    self.next();
                    self.next();
                }
                '$' => self.dollar(&mut draft, true)?,
                '`' => self.backticks(&mut draft, true)?,
                _ => {
                    self.next();
                }
            }
        }
        Ok(())
    }

    /// Whatever a `$` begins.
    fn dollar(&mut self, draft: &mut Draft, is_quoted: bool) -> Result<(), String> {
        self.next();
        match self.peek() {
            Some('(') => {
                self.next();
                if self.peek() == Some('(') {
                    self.arithmetic()?;
                } else {
                    self.nested(End::Substitution)?;
                }
                draft.open(!is_quoted);
            }
            Some('{') => {
                self.next();
                self.parameter()?;
                draft.open(!is_quoted);
            }
            Some(c)
                if c.is_ascii_alphanumeric()
                    || matches!(c, '_' | '?' | '$' | '#' | '@' | '*' | '!' | '-') =>
            {
                let is_name = c.is_ascii_alphabetic() || c == '_';
                self.next();
                while is_name && self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                    self.next();
                }
                draft.open(!is_quoted || c == '@');
            }
            Some('\'' | '"') if !is_quoted => {
                return Err("`$'` and `$\"` mean different things to different shells".into());
            }
            Some('[') => return Err("`$[` means different things to different shells".into()),
            _ => draft.push('$'),
        }
        Ok(())
    }

    /// `$((…))`, behind its first parenthesis. Names in it are refused: some shells evaluate what they hold.
    fn arithmetic(&mut self) -> Result<(), String> {
        let mut depth = 1_u32;
        while depth > 0 {
            match self.next().ok_or("`$((` is never closed")? {
                '(' => depth += 1,
                ')' => depth -= 1,
                c if c.is_ascii_digit() || " \t+-*/%<>=!&|^~?:,".contains(c) => {}
                _ => return Err("arithmetic on anything but numbers cannot be foreseen".into()),
            }
        }
        Ok(())
    }

    /// `${…}`, behind its brace: a name, and at most one operator with plain characters behind it.
    fn parameter(&mut self) -> Result<(), String> {
        let is_length = self.peek() == Some('#') && self.peek_at(1) != Some('}');
        if is_length {
            self.next();
        }
        let mut name = String::new();
        while let Some(c) = self.peek().filter(|c| c.is_ascii_alphanumeric() || *c == '_') {
            name.push(c);
            self.next();
        }
        if name.is_empty() {
            match self.next() {
                Some('?' | '$' | '#' | '@' | '*' | '!' | '-') if self.peek() == Some('}') => {}
                _ => return Err("a `${…}` in it is none that every shell knows".into()),
            }
        }
        let mut rest = String::new();
        loop {
            match self.next().ok_or("`${` is never closed")? {
                '}' => break,
                c if c.is_ascii_alphanumeric() || " ./_:=,@-+?%#*".contains(c) => rest.push(c),
                _ => return Err("a `${…}` with more than plain characters in it cannot be foreseen".into()),
            }
        }
        let operator = rest.trim_start_matches(':');
        let is_known = rest.is_empty()
            || (!is_length && rest.len() - operator.len() <= 1 && operator.starts_with(['-', '=', '+', '?']))
            || (!is_length && rest.starts_with(['%', '#']));
        if !is_known {
            return Err("a `${…}` in it is none that every shell knows".into());
        }
        if operator.starts_with('=') {
            self.script.sets.push(name);
        }
        Ok(())
    }

    /// A command between backticks: read as it stands, then judged like any other.
    fn backticks(&mut self, draft: &mut Draft, is_quoted: bool) -> Result<(), String> {
        self.next();
        let mut inside = String::new();
        loop {
            match self.next().ok_or("a backtick is never closed")? {
                '`' => break,
                '\\' => match self.next() {
                    Some(c @ ('`' | '\\' | '$')) => inside.push(c),
                    Some('"') if is_quoted => inside.push('"'),
                    Some(c) => {
                        inside.push('\\');
                        inside.push(c);
                    }
                    None => return Err("a backtick is never closed".into()),
                },
                c => inside.push(c),
            }
        }
        self.apart(&inside)?;
        draft.open(!is_quoted);
        Ok(())
    }
}

/// One character without quotes.
fn bare(c: char, draft: &mut Draft, next: Option<char>) -> Result<(), String> {
    if c.is_control() || (c.is_whitespace() && !c.is_ascii()) {
        return Err(format!("it holds the character `{}`", c.escape_unicode()));
    }
    let is_first = draft.is_empty();
    match c {
        '*' | '?' => draft.open(true),
        '[' => draft.has_bracket = true,
        ']' if draft.has_bracket => draft.open(true),
        '~' if is_first => draft.open(true),
        // Some shells make several words of `{a,b}`; alone, a brace is a word like any other, and so is `{}`.
        '{' if !(is_first && next.is_none_or(|next| next == '}' || ends_word(next))) => draft.open(true),
        _ => {}
    }
    draft.push(c);
    Ok(())
}
