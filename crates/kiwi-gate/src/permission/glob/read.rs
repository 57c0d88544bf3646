//! From the written glob to its automaton.

use super::automaton::Automaton;
use super::set::Set;

/// Longer ones are no patterns anybody wrote.
const MOST_CHARACTERS: usize = 8192;

enum Token {
    /// This character.
    Letter(char),
    /// One character of a set.
    One(Set),
    /// `*`.
    Star,
    /// `**`.
    Stars,
    /// `/`, where it separates.
    Slash,
}

pub(super) fn name(text: &str) -> Result<Automaton, String> {
    let mut automaton = Automaton::new();
    for token in tokens(text, None)? {
        match token {
            Token::Letter(c) => automaton.letter(c),
            Token::One(on) => automaton.then(on),
            Token::Star | Token::Stars | Token::Slash => automaton.repeat(Set::any()),
        }
    }
    Ok(automaton)
}

pub(super) fn path(text: &str) -> Result<Automaton, String> {
    let mut parts: Vec<Vec<Token>> = vec![Vec::new()];
    for token in tokens(text, Some('/'))? {
        match (token, parts.last_mut()) {
            (Token::Slash, _) => parts.push(Vec::new()),
            (token, Some(part)) => part.push(token),
            (_, None) => {}
        }
    }
    let is_deep = |part: &[Token]| matches!(part, [Token::Stars]);
    parts.dedup_by(|this, last| is_deep(this) && is_deep(last));
    let mut automaton = Automaton::new();
    let last = parts.len().saturating_sub(1);
    // Whether the slash before the next part is already there.
    let mut is_joined = true;
    for (at, part) in parts.into_iter().enumerate() {
        match (is_deep(&part), at == last) {
            (true, true) if is_joined => automaton.repeat(Set::any()),
            (true, true) => automaton.maybe(|automaton| {
                automaton.letter('/');
                automaton.repeat(Set::any());
            }),
            (true, false) => {
                if !is_joined {
                    automaton.letter('/');
                }
                automaton.maybe(|automaton| {
                    automaton.repeat(Set::any());
                    automaton.letter('/');
                });
                is_joined = true;
                continue;
            }
            (false, _) => {
                if !is_joined {
                    automaton.letter('/');
                }
                for token in part {
                    match token {
                        Token::Letter(c) => automaton.letter(c),
                        Token::One(on) => automaton.then(on),
                        Token::Star => automaton.repeat(Set::any().without('/')),
                        Token::Stars | Token::Slash => automaton.repeat(Set::any()),
                    }
                }
            }
        }
        is_joined = false;
    }
    Ok(automaton)
}

fn tokens(text: &str, separator: Option<char>) -> Result<Vec<Token>, String> {
    if text.chars().count() > MOST_CHARACTERS {
        return Err(format!("it is longer than {MOST_CHARACTERS} characters"));
    }
    let inside = |set: Set| separator.map_or_else(|| set.clone(), |separator| set.without(separator));
    let mut tokens = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        tokens.push(match c {
            '*' => {
                let is_double = chars.next_if_eq(&'*').is_some();
                while chars.next_if_eq(&'*').is_some() {}
                if is_double { Token::Stars } else { Token::Star }
            }
            '?' => Token::One(inside(Set::any())),
            '[' => Token::One(inside(class(&mut chars)?)),
            '\\' => Token::Letter(chars.next().ok_or("it ends in `\\`, which makes the next one plain")?),
            c if Some(c) == separator => Token::Slash,
            c => Token::Letter(c),
        });
    }
    Ok(tokens)
}

/// The characters between `[` and `]`. A `]` right at the beginning is one of them.
fn class(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Set, String> {
    let unclosed = || "a `[` in it is never closed; write `\\[` for the character itself".to_owned();
    let is_negated = chars.next_if(|c| matches!(c, '!' | '^')).is_some();
    let (mut set, mut is_first) = (Set::default(), true);
    loop {
        let from = match chars.next().ok_or_else(unclosed)? {
            ']' if !is_first => break,
            '\\' => chars.next().ok_or_else(unclosed)?,
            c => c,
        };
        is_first = false;
        let mut ahead = chars.clone();
        let is_range = ahead.next() == Some('-') && ahead.next().is_some_and(|c| c != ']');
        let to = if is_range {
            chars.next();
            match chars.next().ok_or_else(unclosed)? {
                '\\' => chars.next().ok_or_else(unclosed)?,
                c => c,
            }
        } else {
            from
        };
        if from > to {
            return Err(format!("the range `{from}-{to}` in it is empty"));
        }
        set.add(from, to);
    }
    Ok(if is_negated { set.complement() } else { set })
}
