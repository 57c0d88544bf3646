//! From a text to its tokens. A character that does not belong is complained about and skipped, so that one slip does
//! not hide the next.

mod literal;

use crate::problem::Complaint;
use crate::{Lexeme, MAX_PROBLEMS, Problem, Span, Token};

/// The tokens of a text, and what is wrong with its spelling.
pub fn lex(file: &str, text: &str) -> (Vec<Lexeme>, Vec<Problem>) {
    let (lexemes, complaints) = tokens(text);
    (lexemes, complaints.into_iter().map(|complaint| Problem::new(file, text, complaint)).collect())
}

pub(crate) fn tokens(text: &str) -> (Vec<Lexeme>, Vec<Complaint>) {
    let mut lexer = Lexer { text, at: 0, lexemes: Vec::new(), complaints: Vec::new() };
    while lexer.complaints.len() < MAX_PROBLEMS && lexer.step() {}
    // One string can have any number of bad escapes.
    lexer.complaints.truncate(MAX_PROBLEMS);
    (lexer.lexemes, lexer.complaints)
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    lexemes: Vec<Lexeme>,
    complaints: Vec<Complaint>,
}

fn is_word_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn is_word_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take_while(&mut self, part: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !part(c)).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    fn push(&mut self, start: usize, token: Token) {
        self.lexemes.push(Lexeme { token, span: Span { start, end: self.at } });
    }

    fn complain(&mut self, start: usize, message: impl Into<String>, hint: &str) {
        let complaint = Complaint::new(Span { start, end: self.at }, message);
        self.complaints.push(if hint.is_empty() { complaint } else { complaint.with_hint(hint) });
    }

    /// One token, comment or run of white space; `false` at the end of the text.
    fn step(&mut self) -> bool {
        let Some(first) = self.peek() else { return false };
        let start = self.at;
        match first {
            ' ' | '\t' | '\r' | '\n' => {
                self.take_while(|c| matches!(c, ' ' | '\t' | '\r' | '\n'));
            }
            '#' => {
                self.take_while(|c| c != '\n');
            }
            '"' => self.string(),
            '$' => self.variable(),
            '0'..='9' => self.integer(),
            '{' if self.expects_json() => self.json(),
            c if is_word_start(c) => {
                let word = self.take_while(is_word_part).to_owned();
                self.push(start, Token::Word(word));
            }
            _ => self.sign(first),
        }
        true
    }

    /// Behind `admits`, `asks` and `rejects` a brace opens JSON; the only other word there could be is a rule's name.
    fn expects_json(&self) -> bool {
        let mut back = self.lexemes.iter().rev().map(|lexeme| &lexeme.token);
        let verb = back.next().is_some_and(|token| {
            token.is_word("admits") || token.is_word("asks") || token.is_word("rejects")
        });
        verb && !back.next().is_some_and(|token| token.is_word("rule"))
    }

    fn variable(&mut self) {
        let start = self.at;
        self.at += 1;
        let mut path = Vec::new();
        loop {
            if !self.peek().is_some_and(is_word_start) {
                let hint = "a variable is written `$tool` or `$args.path`";
                return self.complain(start, "a name is missing in this variable", hint);
            }
            path.push(self.take_while(is_word_part).to_owned());
            if self.peek() != Some('.') {
                return self.push(start, Token::Variable(path));
            }
            self.at += 1;
        }
    }

    fn sign(&mut self, first: char) {
        let start = self.at;
        self.at += first.len_utf8();
        let second = self.peek();
        let double = match (first, second) {
            ('-', Some('>')) => Some(Token::Arrow),
            ('=', Some('=')) => Some(Token::Equal),
            ('!', Some('=')) => Some(Token::NotEqual),
            ('<', Some('=')) => Some(Token::LessEqual),
            ('>', Some('=')) => Some(Token::GreaterEqual),
            _ => None,
        };
        if let Some(token) = double {
            self.at += 1;
            return self.push(start, token);
        }
        let token = match first {
            '{' => Token::OpenBrace,
            '}' => Token::CloseBrace,
            '(' => Token::OpenParen,
            ')' => Token::CloseParen,
            ',' => Token::Comma,
            '<' => Token::Less,
            '>' => Token::Greater,
            '+' => Token::Plus,
            '-' => Token::Minus,
            '*' => Token::Star,
            '/' => Token::Slash,
            '%' => Token::Percent,
            _ => return self.stray(start, first, second),
        };
        self.push(start, token);
    }

    fn stray(&mut self, start: usize, first: char, second: Option<char>) {
        let hint = match first {
            '=' => "equality is written `==`",
            '!' => "negation is written `not`",
            '&' => "write `and`",
            '|' => "write `or`",
            '\'' => "strings stand in double quotes",
            '/' => "a comment begins with `#`",
            '\u{feff}' => "save the file without a byte order mark",
            _ => "",
        };
        if matches!(first, '&' | '|') && second == Some(first) {
            self.at += 1;
        }
        let shown = if first.is_control() { first.escape_unicode().to_string() } else { first.to_string() };
        self.complain(start, format!("`{shown}` does not belong here"), hint);
    }
}
