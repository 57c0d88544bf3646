//! Numbers, strings, and the JSON of examples.

use serde_json::{Map, Value};

use super::{Lexer, is_word_part};
use crate::problem::{Complaint, floor_boundary};
use crate::{Span, Token};

impl Lexer<'_> {
    pub(super) fn integer(&mut self) {
        let start = self.at;
        let digits = self.take_while(|c| c.is_ascii_digit());
        if self.peek().is_some_and(|c| c == '.' || is_word_part(c)) {
            self.take_while(|c| c == '.' || is_word_part(c));
            let hint = "κ has no floats: write a whole number, or basis points with `bps_mul` and `bps_div`";
            return self.complain(start, "this is not a whole number", hint);
        }
        match digits.parse() {
            Ok(integer) => self.push(start, Token::Integer(integer)),
            Err(_) => {
                self.complain(start, "this integer is too large", "the largest is 9223372036854775807");
            }
        }
    }

    pub(super) fn string(&mut self) {
        let start = self.at;
        self.at += 1;
        let mut value = String::new();
        loop {
            value.push_str(self.take_while(|c| !matches!(c, '"' | '\\' | '\n')));
            match self.peek() {
                Some('"') => {
                    self.at += 1;
                    return self.push(start, Token::Text(value));
                }
                Some('\\') => self.escape(&mut value),
                _ => {
                    self.complain(start, "this string does not end", "close it with `\"` on the same line");
                    // Taken as if it were closed, so that the parser complains about the rest alone.
                    return self.push(start, Token::Text(value));
                }
            }
        }
    }

    fn escape(&mut self, value: &mut String) {
        let start = self.at;
        self.at += 1;
        let escaped = self.peek();
        let meant = match escaped {
            Some('"') => '"',
            Some('\\') => '\\',
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            _ => {
                self.at += escaped.filter(|c| !matches!(c, '\n' | '"')).map_or(0, char::len_utf8);
                let hint =
                    "known are `\\\"`, `\\\\`, `\\n`, `\\r` and `\\t`; other characters stand for themselves";
                return self.complain(start, "an unknown escape", hint);
            }
        };
        self.at += 1;
        value.push(meant);
    }

    pub(super) fn json(&mut self) {
        let start = self.at;
        let rest = self.rest();
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Map<String, Value>>();
        match stream.next() {
            Some(Ok(object)) => {
                self.at += stream.byte_offset();
                self.push(start, Token::Json(object));
            }
            Some(Err(error)) => {
                let lines: usize =
                    rest.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
                let place = start + (lines + error.column().saturating_sub(1)).min(rest.len());
                let place = floor_boundary(self.text, place);
                self.skip_braces();
                let told = error.to_string();
                let told = told.split(" at line ").next().unwrap_or_default();
                let complaint =
                    Complaint::new(Span { start: place, end: place }, format!("not JSON: {told}"));
                self.complaints
                    .push(complaint.with_hint("an example is a JSON object such as {\"tool\": \"a\"}"));
                // An empty one in its place, so that the parser goes on behind it.
                self.push(start, Token::Json(Map::new()));
            }
            None => self.at += 1,
        }
    }

    /// To behind the brace that closes the one here, or to the end of the text.
    fn skip_braces(&mut self) {
        let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
        let rest = self.rest();
        for (offset, byte) in rest.bytes().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                b'{' if !quoted => depth += 1,
                b'}' if !quoted => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                self.at += offset + 1;
                return;
            }
        }
        self.at = self.text.len();
    }
}
