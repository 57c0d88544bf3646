//! From tokens to a tree. Hand-written descent over the grammar; after an error it looks for the next place where a
//! clause, an effect or a rule can begin.

mod expression;
mod file;

use crate::lexer::tokens;
use crate::problem::Complaint;
use crate::syntax::FileSyntax;
use crate::{Lexeme, Problem, Span, Token};

/// How many problems are reported for one file; the rest is usually echo.
pub const MAX_PROBLEMS: usize = 5;
/// How deeply parentheses and calls may nest. A rule that needs more cannot be read by people either.
pub const MAX_NESTING: usize = 64;

/// What is wrong with the form of a rule file; nothing, when it can be read.
pub fn parse(file: &str, text: &str) -> Vec<Problem> {
    read(text).1.into_iter().map(|complaint| Problem::new(file, text, complaint)).collect()
}

pub(crate) fn read(text: &str) -> (FileSyntax, Vec<Complaint>) {
    let (lexemes, mut complaints) = tokens(text);
    // A lexer that gave up has not seen the whole text; judging its half would complain about what is not wrong.
    if complaints.len() >= MAX_PROBLEMS {
        return (FileSyntax::default(), complaints);
    }
    let mut parser = Parser { lexemes: &lexemes, at: 0, end: text.len(), depth: 0, complaints: Vec::new() };
    let file = parser.file();
    complaints.append(&mut parser.complaints);
    complaints.sort_by_key(|complaint| complaint.span.start);
    complaints.truncate(MAX_PROBLEMS);
    (file, complaints)
}

/// The complaint has been written down; go and find a place to continue.
struct Lost;

type Parsed<T> = Result<T, Lost>;

struct Parser<'a> {
    lexemes: &'a [Lexeme],
    at: usize,
    end: usize,
    depth: usize,
    complaints: Vec<Complaint>,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a Token> {
        self.lexemes.get(self.at).map(|lexeme| &lexeme.token)
    }

    fn peek_word(&self) -> Option<&'a str> {
        match self.peek() {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    /// Where the next token stands, or the end of the text.
    fn here(&self) -> Span {
        self.lexemes.get(self.at).map_or(Span { start: self.end, end: self.end }, |lexeme| lexeme.span)
    }

    /// Where the token before stands.
    fn behind(&self) -> Span {
        let before = self.at.checked_sub(1).and_then(|at| self.lexemes.get(at));
        before.map_or(self.here(), |lexeme| lexeme.span)
    }

    fn bump(&mut self) {
        self.at += 1;
    }

    fn take(&mut self, token: &Token) -> bool {
        let found = self.peek() == Some(token);
        if found {
            self.bump();
        }
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.peek_word() == Some(word);
        if found {
            self.bump();
        }
        found
    }

    fn expect(&mut self, token: &Token, hint: &str) -> Parsed<()> {
        if self.take(token) { Ok(()) } else { self.lost(&token.to_string(), hint) }
    }

    /// Complains that something else was expected here.
    fn lost<T>(&mut self, expected: &str, hint: &str) -> Parsed<T> {
        let found = self.peek().map_or("the end of the file".to_owned(), ToString::to_string);
        self.complain(self.here(), format!("expected {expected}, found {found}"), hint);
        Err(Lost)
    }

    fn complain(&mut self, span: Span, message: String, hint: &str) {
        let complaint = Complaint::new(span, message);
        self.complaints.push(if hint.is_empty() { complaint } else { complaint.with_hint(hint) });
    }

    fn is_full(&self) -> bool {
        self.complaints.len() >= MAX_PROBLEMS
    }
}
