//! Text that people do not see, or cannot read.

/// A word longer than this that looks encoded is.
const ENCODED: usize = 80;
/// So much blank space pushes what follows out of sight.
const BLANKS: usize = 120;
const LINES: usize = 40;

/// Whether a character has no shape of its own.
pub(super) fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Hidden characters that carry or turn text. Those that honest writing needs are passed over where it needs them: a
/// joiner between letters of scripts that join, and the selector behind an emoji.
pub(super) fn characters(text: &str) -> Option<String> {
    if text.is_ascii() {
        return blanks(text);
    }
    let is_right_to_left = text.chars().any(|c| matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}'));
    let mut before = None;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let after = characters.peek().copied();
        let is_harmless = match c {
            '\u{200c}' | '\u{200d}' => {
                let joins =
                    |c: Option<char>| c.is_some_and(|c| !c.is_ascii() && (!is_hidden(c) || c == '\u{fe0f}'));
                joins(before) && joins(after)
            }
            '\u{fe0e}' | '\u{fe0f}' => {
                before.is_some_and(|c| !is_hidden(c) && (!c.is_ascii_alphabetic() && c != ' '))
            }
            '\u{200e}' | '\u{200f}' | '\u{61c}' => is_right_to_left,
            // A mark of the byte order at the very start is an accident.
            '\u{feff}' => before.is_none(),
            c => !is_hidden(c),
        };
        if !is_harmless {
            return Some(around(text, c));
        }
        before = Some(c);
    }
    blanks(text)
}

/// What stands around the first place of a character.
fn around(text: &str, c: char) -> String {
    let at = text.find(c).unwrap_or(0);
    let before: Vec<char> = text.get(..at).unwrap_or_default().chars().rev().take(20).collect();
    before.into_iter().rev().chain(text.get(at..).unwrap_or_default().chars().take(40)).collect()
}

/// Text behind so much blank space that nobody scrolls there.
fn blanks(text: &str) -> Option<String> {
    let (mut blanks, mut lines) = (0, 0);
    for c in text.trim_end().chars() {
        match c {
            '\n' => {
                lines += 1;
                blanks = 0;
            }
            c if c.is_whitespace() => blanks += 1,
            _ if blanks >= BLANKS || lines >= LINES => {
                return Some(format!("{blanks} blanks and {lines} empty lines in front of text"));
            }
            _ => (blanks, lines) = (0, 0),
        }
    }
    None
}

/// Control characters other than the usual blanks.
pub(super) fn controls(text: &str) -> Option<String> {
    let c = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'))?;
    Some(around(text, c))
}

/// A long run of what base64 is made of, and of which no address or path is.
pub(super) fn encoded(text: &str) -> Option<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '_' | '-');
    text.split(|c: char| !is_part(c)).find(|run| {
        let has = |test: fn(&u8) -> bool| run.bytes().any(|byte| test(&byte));
        let breaks = run.bytes().filter(|byte| matches!(byte, b'/' | b'_' | b'-')).count();
        run.len() >= ENCODED
            && has(u8::is_ascii_uppercase)
            && has(u8::is_ascii_lowercase)
            && has(u8::is_ascii_digit)
            && breaks * 10 < run.len()
    })
}
