//! The words of κ.

use serde_json::{Map, Value};

use crate::Span;

/// One token and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Lexeme {
    /// What.
    pub token: Token,
    /// Where.
    pub span: Span,
}

/// What a text is made of.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names are those of the grammar")]
pub enum Token {
    Word(String),
    /// `$args.path` without the `$`, split at its dots.
    Variable(Vec<String>),
    Integer(i64),
    Text(String),
    /// The object behind `admits`, `asks` or `rejects`.
    Json(Map<String, Value>),
    Arrow,
    OpenBrace,
    CloseBrace,
    OpenParen,
    CloseParen,
    Comma,
    Equal,
    NotEqual,
    Less,
    Greater,
    LessEqual,
    GreaterEqual,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
}

/// Words with a meaning of their own; a rule cannot be called like one of them.
pub(crate) const RESERVED: [&str; 13] = [
    "rule", "guards", "effects", "examples", "admit", "ask", "reject", "else", "and", "or", "not", "true",
    "false",
];

impl Token {
    /// Whether this is a given word.
    pub(crate) fn is_word(&self, word: &str) -> bool {
        matches!(self, Self::Word(text) if text == word)
    }
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = match self {
            Self::Word(word) => return write!(f, "`{word}`"),
            Self::Variable(path) => return write!(f, "`${}`", path.join(".")),
            Self::Integer(integer) => return write!(f, "`{integer}`"),
            Self::Text(_) => return f.write_str("a string"),
            Self::Json(_) => return f.write_str("a JSON object"),
            Self::Arrow => "->",
            Self::OpenBrace => "{",
            Self::CloseBrace => "}",
            Self::OpenParen => "(",
            Self::CloseParen => ")",
            Self::Comma => ",",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::Greater => ">",
            Self::LessEqual => "<=",
            Self::GreaterEqual => ">=",
            Self::Plus => "+",
            Self::Minus => "-",
            Self::Star => "*",
            Self::Slash => "/",
            Self::Percent => "%",
        };
        write!(f, "`{sign}`")
    }
}
